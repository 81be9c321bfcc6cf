/** Arguments for the text functions, which take strings, numbers or nothing. */
const SAMPLES = ['wallbox', 'heatpump', 'car', 'fridge'];

/** A text with arguments. */
type Text = (...args: readonly unknown[]) => unknown;

/** Every text by its path, such as `result.reasons.expired`; functions called with samples. */
export function flat(texts: unknown, path = ''): Map<string, string> {
  if (typeof texts === 'string') return new Map([[path, texts]]);
  if (typeof texts === 'function') return flat(callText(texts as Text), `${path}()`);
  if (typeof texts !== 'object' || texts === null) throw new TypeError(`${path} is no text: ${typeof texts}`);
  return new Map(
    Object.entries(texts).flatMap(([key, value]) => [...flat(value, path === '' ? key : `${path}.${key}`)]),
  );
}

/** The text for sample names or, if the function takes none, for numbers. */
function callText(text: Text): unknown {
  const numbers = SAMPLES.map((_, index) => 12 + index);
  for (const samples of [SAMPLES, numbers]) {
    try {
      const result = text(...samples);
      if (result !== undefined && !/undefined|NaN|Invalid/.test(String(result))) return result;
    } catch {
      // The function takes another kind of sample.
    }
  }
  throw new TypeError(`a text takes neither names nor numbers: ${text}`);
}
