"""OpenTelemetry: spans and metrics of clients, their calls, and their waits for locks.

    from paddock.otel import OpenTelemetry

    async with paddock.connect("127.0.0.1:2181", observer=OpenTelemetry()) as client:
        await client.get("/config")

It needs the extra `paddock-zk[otel]`, which is OpenTelemetry's API. Where spans and metrics go is
the choice of the program, by the SDK. Nothing else in Paddock imports this package.
"""

try:
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401
except ImportError as error:
    raise ImportError(
        "paddock.otel needs the package opentelemetry-api: pip install 'paddock-zk[otel]'"
    ) from error

from paddock.otel.telemetry import OpenTelemetry

__all__ = ["OpenTelemetry"]
