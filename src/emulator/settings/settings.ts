/**
 * A setting of the emulated portal, declared once: the library's option, the flag, the TOML key, the API's member, the
 * console's control and the table of docs/emulator.md all follow from it.
 */
export interface SettingDefinition<Value> {
  readonly values: SettingValues;
  readonly initial: Value;
  /** What null, or 0, stands for where that is a value. */
  readonly nothing?: string;
  /** How the console asks for it. */
  readonly label: string;
  /** What the flag's help and the documentation say. */
  readonly description: string;
}

/** Which values a setting takes; {@link SettingDefinition.initial} is null where null is one, too. */
type SettingValues =
  | { readonly kind: 'boolean' }
  /** The values, each with the words that the console has for it. */
  | { readonly kind: 'choice'; readonly choices: Readonly<Record<string, string>> }
  /** `above 0`, or from 0, or whole ones from 1. */
  | { readonly kind: 'seconds'; readonly range: 'above 0' | 'from 0' | 'whole' }
  /** A whole number from 0; `unit` is what the console counts. */
  | { readonly kind: 'count'; readonly unit: string }
  | { readonly kind: 'regular expression' };

/** All settings, by their names in the library. */
export const SETTINGS = {
  /** Opening the authorize URL logs the first user in at once. Default: false. */
  autoLogin: booleanSetting(false, {
    label: 'Opening the link logs in at once',
    description: 'opening the authorize URL logs the first user in',
  }),
  /** Every link asks for name and password; else a browser that has logged in is only asked whether to go on. Default: false. */
  forgetLogins: booleanSetting(false, {
    label: 'Browsers are asked for the password each time',
    description:
      'every link asks for name and password; else a browser that has logged in is only asked whether to go on',
  }),
  /** How long the links of a config response work, told to them when they are made. Seconds; default: 1800. */
  stateLifetime: secondsSetting('above 0', 1800, {
    label: 'Links live',
    description: 'how long the links of a config response work',
  }),
  /** Of authorization codes. Seconds; default: 45 (the specification says 30 to 60). */
  codeLifetime: secondsSetting('above 0', 45, {
    label: 'Codes live',
    description: 'how long authorization codes are good',
  }),
  /** Of access tokens, told to each when it is issued. A whole number of seconds; default: 3600. */
  tokenLifetime: secondsSetting('whole', 3600, {
    label: 'Access tokens live',
    description: 'how long access tokens are good',
  }),
  /** Of an unused refresh token, counted from its own issue. Seconds; default: null, for ever. */
  refreshLifetime: optionalSecondsSetting({
    label: 'Unused refresh tokens live',
    description: 'how long an unused refresh token is good',
  }),
  /** How long after the login a grant can be refreshed, however often it was. Seconds; default: null, for ever. */
  grantLifetime: optionalSecondsSetting({
    label: 'Grants live',
    description: 'how long a login can be refreshed, however often it was',
  }),
  /** For how many further generations a used refresh token stays good, each time for new tokens. Default: 0, for none. */
  refreshGrace: countSetting({
    unit: 'more generations',
    label: 'Used refresh tokens stay good for',
    description: 'generations for which a used refresh token stays good',
  }),
  /** How long after its first use a refresh token is answered with the very same tokens again. Seconds; default: 0, not at all. */
  refreshGraceTime: secondsSetting('from 0', 0, {
    label: 'They get the same answer again for',
    description: 'how long a used refresh token is answered with the same tokens again',
  }),
  /** What a used refresh token past its grace does: only fail (default), or take its whole grant with it. */
  onReuse: choiceSetting('refuse', {
    choices: { refuse: 'is refused', 'revoke-family': 'revokes its whole grant' },
    label: 'A used refresh token',
    description: 'a used refresh token only fails, or (revoke-family) takes its grant with it',
  }),
  /** HTTP Basic at the token endpoint (RFC 6749, 2.3.1). Default: `accept`. */
  basic: choiceSetting('accept', {
    choices: { accept: 'is accepted', refuse: 'is refused' },
    label: 'HTTP Basic at the token endpoint',
    description: 'whether HTTP Basic is good at the token endpoint: accept or refuse',
  }),
  /** Whether a refused login comes to the client's redirect_url as `error=access_denied`. Default: true. */
  relayRefusal: booleanSetting(true, {
    label: 'A refused login is told to the redirect_url',
    description: 'a refused login comes to the redirect_url as error=access_denied',
  }),
  /** Whether code_url goes on serving a code that was exchanged, until it expires. Default: `gone` (404). */
  codeUrlAfterExchange: choiceSetting('gone', {
    choices: { gone: 'answers 404', served: 'goes on serving the code' },
    label: 'code_url, after the exchange',
    description: 'code_url answers 404 after the exchange, or (served) goes on serving the code',
  }),
  /**
   * A JavaScript regular expression: config answers 400 to a redirect_url that it matches somewhere. At most 200
   * characters. Default: null, none.
   */
  refuseRedirectUrls: regularExpressionSetting({
    label: 'Refuse a redirect_url like',
    description: 'config answers 400 to a redirect_url that matches this regular expression',
  }),
  /** What error answers to a program hold: RFC 6749's JSON (default), a web page, or nothing. Pages for people stay. */
  errorBody: choiceSetting('json', {
    choices: { json: 'JSON', html: 'a web page', empty: 'nothing' },
    label: 'Error answers hold',
    description: "what errors hold: RFC 6749's JSON, html, or nothing (empty)",
  }),
  /** Token responses have an `id_token`, a JWT that tells who has logged in. Default: false. */
  idToken: booleanSetting(false, {
    label: 'Token responses tell who has logged in (id_token)',
    description: 'token responses have an id_token, a JWT that tells who has logged in (sub, preferred_username)',
  }),
  /**
   * How many requests of each kind (config, code/get, token, whoami) a client may send in `rateLimitWindow`; further ones
   * are answered 429 with Retry-After, and nothing is done for them. Default: 0, any number.
   */
  rateLimit: countSetting({
    nothing: 'any number',
    unit: '0 for any number',
    label: 'Requests of each kind a client may send',
    description: 'requests of one kind a client may send in a window; then 429 with Retry-After',
  }),
  /** The window of `rateLimit`. Seconds; default: 60. */
  rateLimitWindow: secondsSetting('above 0', 60, {
    label: 'In a time of',
    description: 'the window of the rate limit',
  }),
};

/**
 * How the emulated portal behaves wherever the specification is silent; all of it may be changed while it runs.
 * Times are in seconds.
 */
export type Settings = { readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name]['initial'] };

/** Some of the settings; those that are left out keep their value. */
export type SettingOptions = { readonly [Name in keyof Settings]?: Settings[Name] | undefined };

type SettingTexts = Pick<SettingDefinition<unknown>, 'label' | 'description'>;

function booleanSetting(initial: boolean, texts: SettingTexts): SettingDefinition<boolean> {
  return { values: { kind: 'boolean' }, initial, ...texts };
}

function choiceSetting<Value extends string>(
  initial: NoInfer<Value>,
  { choices, ...texts }: SettingTexts & { readonly choices: Readonly<Record<Value, string>> },
): SettingDefinition<Value> {
  return { values: { kind: 'choice', choices }, initial, ...texts };
}

function secondsSetting(
  range: 'above 0' | 'from 0' | 'whole',
  initial: number,
  texts: SettingTexts,
): SettingDefinition<number> {
  return { values: { kind: 'seconds', range }, initial, ...texts };
}

function optionalSecondsSetting(texts: SettingTexts): SettingDefinition<number | null> {
  return { values: { kind: 'seconds', range: 'above 0' }, initial: null, nothing: 'for ever', ...texts };
}

function countSetting({
  unit,
  ...texts
}: SettingTexts & { readonly unit: string; readonly nothing?: string }): SettingDefinition<number> {
  return { values: { kind: 'count', unit }, initial: 0, ...texts };
}

function regularExpressionSetting(texts: SettingTexts): SettingDefinition<string | null> {
  return { values: { kind: 'regular expression' }, initial: null, nothing: 'none', ...texts };
}
