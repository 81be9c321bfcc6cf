/** A domain value as it stands on the control socket: the names of its members in snake_case. */
export type Wire<Value> = Value extends readonly (infer Item)[]
  ? readonly Wire<Item>[]
  : Value extends object
    ? { [Key in keyof Value as SnakeCase<Key & string>]: Wire<Value[Key]> }
    : Value;

type SnakeCase<Name extends string> = Name extends `${infer Letter}${infer Rest}`
  ? `${Letter extends Lowercase<Letter> ? Letter : `_${Lowercase<Letter>}`}${SnakeCase<Rest>}`
  : Name;

/** Gives a domain value its names on the control socket; it holds what JSON can hold, and no secrets. */
export function toWire<Value>(value: Value): Wire<Value>;
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => toWire(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCase(name), toWire(member)]));
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
