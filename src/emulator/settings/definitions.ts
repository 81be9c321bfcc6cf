/**
 * A setting of the emulated portal. The library's option, the flag, the TOML key, the API's member and the console's
 * control are derived from it, and the table of docs/emulator.md must match it.
 */
export interface SettingDefinition<Value> {
  readonly values: SettingValues;
  readonly initial: Value;
  /** The meaning of null or 0, if that is a special value. */
  readonly nothing?: string;
  /** Its text in the flag's help, on the console and in docs/emulator.md. */
  readonly description: string;
}

/** The values of a setting. If {@link SettingDefinition.initial} is null, null is valid too. */
type SettingValues =
  /** `count`: a whole number from 0. */
  | { readonly kind: 'boolean' | 'count' | 'regular expression' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  /** `above 0`, `from 0`, or `whole`: whole numbers from 1. */
  | { readonly kind: 'seconds'; readonly range: 'above 0' | 'from 0' | 'whole' }
  /** Names or requirements with one space between them. */
  | { readonly kind: 'text'; readonly syntax: TextSyntax };

/** `name`: one name; `scopes`: names; `requirements`: `OPERATION:NAME` or `OPERATION:NAME=VALUE`, with a percent-encoded value. */
export type TextSyntax = 'name' | 'scopes' | 'requirements';

export function booleanSetting(initial: boolean, description: string): SettingDefinition<boolean> {
  return { values: { kind: 'boolean' }, initial, description };
}

/** @param choices the initial one first */
export function choiceSetting<const Value extends string>(
  choices: readonly [Value, ...Value[]],
  description: string,
): SettingDefinition<Value> {
  return { values: { kind: 'choice', choices }, initial: choices[0], description };
}

export function secondsSetting(
  range: 'above 0' | 'from 0' | 'whole',
  initial: number,
  description: string,
): SettingDefinition<number> {
  return { values: { kind: 'seconds', range }, initial, description };
}

export function optionalSecondsSetting(description: string): SettingDefinition<number | null> {
  return { values: { kind: 'seconds', range: 'above 0' }, initial: null, nothing: 'no limit', description };
}

/** @param nothing the meaning of 0, if that is a special value */
export function countSetting(description: string, nothing?: string): SettingDefinition<number> {
  return { values: { kind: 'count' }, initial: 0, ...(nothing !== undefined && { nothing }), description };
}

export function regularExpressionSetting(description: string): SettingDefinition<string | null> {
  return { values: { kind: 'regular expression' }, initial: null, nothing: 'none', description };
}

export function textSetting(syntax: TextSyntax, description: string): SettingDefinition<string | null> {
  return { values: { kind: 'text', syntax }, initial: null, nothing: 'none', description };
}
