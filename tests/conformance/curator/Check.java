import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Marks a method {@code void name(Ground ground)} as a check; its name says what must hold. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
@interface Check {
    /** True if the check may not run beside others: it asks for something, such as a restart. */
    boolean alone() default false;
}
