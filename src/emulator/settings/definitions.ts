/**
 * A setting of the emulated portal. The library's option, the flag, the TOML key, the API's member and the console's
 * control are derived from it, and the table of docs/emulator.md must match it.
 */
export interface SettingDefinition<Value> {
  readonly values: SettingValues;
  readonly initial: Value;
  /** The meaning of null or 0, if that is a special value. */
  readonly nothing?: string;
  /** The label of its control on the console. */
  readonly label: string;
  /** Its text in the flag's help and in docs/emulator.md. */
  readonly description: string;
}

/** The values of a setting. If {@link SettingDefinition.initial} is null, null is valid too. */
type SettingValues =
  | { readonly kind: 'boolean' }
  /** The values, each with its text on the console. */
  | { readonly kind: 'choice'; readonly choices: Readonly<Record<string, string>> }
  /** `above 0`, `from 0`, or `whole`: whole numbers from 1. */
  | { readonly kind: 'seconds'; readonly range: 'above 0' | 'from 0' | 'whole' }
  /** A whole number from 0; `unit` is its unit on the console. */
  | { readonly kind: 'count'; readonly unit: string }
  | { readonly kind: 'regular expression' }
  /** Names or requirements with one space between them. */
  | { readonly kind: 'text'; readonly syntax: TextSyntax };

/** `scopes`: names; `requirements`: `OPERATION:NAME` or `OPERATION:NAME=VALUE`, with a percent-encoded value. */
export type TextSyntax = 'scopes' | 'requirements';

/** The texts of a setting. */
type SettingTexts = Pick<SettingDefinition<unknown>, 'label' | 'description'>;

export function booleanSetting(initial: boolean, texts: SettingTexts): SettingDefinition<boolean> {
  return { values: { kind: 'boolean' }, initial, ...texts };
}

export function choiceSetting<Value extends string>(
  initial: NoInfer<Value>,
  { choices, ...texts }: SettingTexts & { readonly choices: Readonly<Record<Value, string>> },
): SettingDefinition<Value> {
  return { values: { kind: 'choice', choices }, initial, ...texts };
}

export function secondsSetting(
  range: 'above 0' | 'from 0' | 'whole',
  initial: number,
  texts: SettingTexts,
): SettingDefinition<number> {
  return { values: { kind: 'seconds', range }, initial, ...texts };
}

export function optionalSecondsSetting(texts: SettingTexts): SettingDefinition<number | null> {
  return { values: { kind: 'seconds', range: 'above 0' }, initial: null, nothing: 'no limit', ...texts };
}

export function countSetting({
  unit,
  ...texts
}: SettingTexts & { readonly unit: string; readonly nothing?: string }): SettingDefinition<number> {
  return { values: { kind: 'count', unit }, initial: 0, ...texts };
}

export function regularExpressionSetting(texts: SettingTexts): SettingDefinition<string | null> {
  return { values: { kind: 'regular expression' }, initial: null, nothing: 'none', ...texts };
}

export function textSetting(syntax: TextSyntax, texts: SettingTexts): SettingDefinition<string | null> {
  return { values: { kind: 'text', syntax }, initial: null, nothing: 'none', ...texts };
}
