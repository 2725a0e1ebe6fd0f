/* Data of nodes: from base64 to bytes, and what they are. */

/** Return the bytes of a base64 text. */
export function decode(text) {
  const binary = atob(text ?? "");
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Return bytes as base64. */
export function encode(bytes) {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 32768)
    binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(binary);
}

export function encodeText(text) {
  return encode(new TextEncoder().encode(text));
}

/** Return bytes as text, or null if they are none. The end of data that was cut may be half a character. */
export function asText(bytes, isCut = false) {
  for (const missing of isCut ? [0, 1, 2, 3] : [0]) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
        bytes.subarray(0, bytes.length - missing),
      );
    } catch {
      // Not UTF-8 up to there.
    }
  }
  return null;
}

/** Return the type of an image, or null. SVG is text here: it is a program, not a picture. */
export function imageType(bytes) {
  const starts = (...wanted) => wanted.every((byte, index) => bytes[index] === byte);
  if (starts(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return "image/png";
  if (starts(0xff, 0xd8, 0xff)) return "image/jpeg";
  if (starts(0x47, 0x49, 0x46, 0x38)) return "image/gif";
  const isRiff =
    starts(0x52, 0x49, 0x46, 0x46) &&
    bytes[8] === 0x57 &&
    bytes[9] === 0x45 &&
    bytes[10] === 0x42 &&
    bytes[11] === 0x50;
  return isRiff ? "image/webp" : null;
}

/** Return bytes in lines of sixteen: where, the bytes, and what can be read of them. */
export function hexLines(bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 16) {
    const part = bytes.subarray(i, i + 16);
    const hex = Array.from(part, (byte) => byte.toString(16).padStart(2, "0"));
    const left = `${hex.slice(0, 8).join(" ")}  ${hex.slice(8).join(" ")}`.padEnd(49);
    const readable = Array.from(part, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·",
    ).join("");
    lines.push(`${i.toString(16).padStart(6, "0")}  ${left} ${readable}`);
  }
  return lines.join("\n");
}

/** Return one line of data, for lists. */
export function preview(base64, length = 80) {
  if (!base64) return "";
  const bytes = decode(base64.slice(0, 4 * Math.ceil((length * 4) / 3)));
  const text = asText(bytes, true);
  return text === null
    ? `${Array.from(bytes.subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join(" ")}…`
    : text.slice(0, length);
}
