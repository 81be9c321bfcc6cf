import * as v from 'valibot';
import { OptionError } from './option-error.ts';

/**
 * How the emulated portal behaves wherever the specification is silent; all of it may be changed while it runs.
 * Times are in seconds.
 */
export interface Switches {
  /** Opening the authorize URL logs the first user in at once. Default: false. */
  readonly autoLogin: boolean;
  /** Every link asks for name and password; else a browser that has logged in is only asked whether to go on. Default: false. */
  readonly forgetLogins: boolean;
  /** How long the links of a config response work, told to them when they are made. Default: 1800. */
  readonly stateLifetime: number;
  /** Of authorization codes. Default: 45 (the specification says 30 to 60). */
  readonly codeLifetime: number;
  /** Of access tokens, told to each when it is issued: a whole number. Default: 3600. */
  readonly tokenLifetime: number;
  /** Of an unused refresh token, counted from its own issue. Default: null, for ever. */
  readonly refreshLifetime: number | null;
  /** How long after the login a grant can be refreshed, however often it was. Default: null, for ever. */
  readonly grantLifetime: number | null;
  /** For how many further generations a used refresh token stays good, each time for new tokens. Default: 0, for none. */
  readonly refreshGrace: number;
  /** How long after its first use a refresh token is answered with the very same tokens again. Default: 0, not at all. */
  readonly refreshGraceTime: number;
  /** What a used refresh token past its grace does: only fail (default), or take its whole grant with it. */
  readonly onReuse: 'refuse' | 'revoke-family';
  /** HTTP Basic at the token endpoint (RFC 6749, 2.3.1). Default: `accept`. */
  readonly basic: 'accept' | 'refuse';
  /** Whether a refused login comes to the client's redirect_url as `error=access_denied`. Default: true. */
  readonly relayRefusal: boolean;
  /** Whether code_url goes on serving a code that was exchanged, until it expires. Default: `gone` (404). */
  readonly codeUrlAfterExchange: 'gone' | 'served';
  /**
   * A JavaScript regular expression: config answers 400 to a redirect_url that it matches somewhere. At most 200
   * characters. Default: null, none.
   */
  readonly refuseRedirectUrls: string | null;
  /** What error answers to a program hold: RFC 6749's JSON (default), a web page, or nothing. Pages for people stay. */
  readonly errorBody: 'json' | 'html' | 'empty';
  /** Token responses have an `id_token`, a JWT that tells who has logged in. Default: false. */
  readonly idToken: boolean;
  /**
   * How many requests of each kind (config, code/get, token, whoami) a client may send in `rateLimitWindow`; further ones
   * are answered 429 with Retry-After, and nothing is done for them. Default: 0, any number.
   */
  readonly rateLimit: number;
  /** Default: 60. */
  readonly rateLimitWindow: number;
}

/** Some of the switches; those that are left out keep their value. */
export type SwitchOptions = { readonly [Name in keyof Switches]?: Switches[Name] | undefined };

/** A JavaScript timestamp has to hold now and all of these together. */
const LONGEST = 1e9;

const yesOrNo = v.boolean('is true or false');
const lifetime = v.message(
  v.pipe(v.number(), v.gtValue(0), v.maxValue(LONGEST)),
  `is a number of seconds above 0, at most ${LONGEST}`,
);

/** Each switch's values; the message of an issue says what is allowed ("is …"). */
export const switchesSchema = v.strictObject({
  autoLogin: yesOrNo,
  forgetLogins: yesOrNo,
  stateLifetime: lifetime,
  codeLifetime: lifetime,
  tokenLifetime: whole(1, LONGEST),
  refreshLifetime: v.nullable(lifetime),
  grantLifetime: v.nullable(lifetime),
  refreshGrace: whole(0, LONGEST),
  refreshGraceTime: v.message(
    v.pipe(v.number(), v.minValue(0), v.maxValue(LONGEST)),
    `is a number of seconds from 0 to ${LONGEST}`,
  ),
  onReuse: oneOf('refuse', 'revoke-family'),
  basic: oneOf('accept', 'refuse'),
  relayRefusal: yesOrNo,
  codeUrlAfterExchange: oneOf('gone', 'served'),
  refuseRedirectUrls: v.nullable(
    v.message(
      v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.check(isRegularExpression)),
      'is a JavaScript regular expression of 1 to 200 characters',
    ),
  ),
  errorBody: oneOf('json', 'html', 'empty'),
  idToken: yesOrNo,
  rateLimit: whole(0, LONGEST),
  rateLimitWindow: lifetime,
}) satisfies v.GenericSchema<unknown, Switches>;

const DEFAULTS: Switches = {
  autoLogin: false,
  forgetLogins: false,
  stateLifetime: 1800,
  codeLifetime: 45,
  tokenLifetime: 3600,
  refreshLifetime: null,
  grantLifetime: null,
  refreshGrace: 0,
  refreshGraceTime: 0,
  onReuse: 'refuse',
  basic: 'accept',
  relayRefusal: true,
  codeUrlAfterExchange: 'gone',
  refuseRedirectUrls: null,
  errorBody: 'json',
  idToken: false,
  rateLimit: 0,
  rateLimitWindow: 60,
};

/** The names of all switches. */
export const SWITCHES: readonly string[] = Object.keys(DEFAULTS);

/**
 * The switches after a change.
 * @param change camelCase names; unknown ones are refused
 * @param before default: the defaults
 * @throws OptionError
 */
export function switched(change: object, before: Switches = DEFAULTS): Switches {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const parsed = v.safeParse(switchesSchema, { ...before, ...Object.fromEntries(given) });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const name = v.getDotPath(issue) ?? '';
  if (!SWITCHES.includes(name)) {
    throw new OptionError(`${name.slice(0, 100)}: found an unknown name; allowed are ${SWITCHES.join(', ')}`);
  }
  throw new OptionError(`${name}: found ${found(issue.input)}; allowed ${issue.message}`);
}

/** The switches alone, of an object that holds more. */
export function switchesIn(holder: Switches): Switches {
  return v.parse(v.object(switchesSchema.entries), holder);
}

function found(value: unknown): string {
  return (typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value)).slice(0, 100);
}

function whole(lowest: number, highest: number) {
  return v.message(
    v.pipe(v.number(), v.integer(), v.minValue(lowest), v.maxValue(highest)),
    `is a whole number from ${lowest} to ${highest}`,
  );
}

function oneOf<const Value extends string>(...values: readonly Value[]) {
  return v.picklist(values, `is ${values.join(' or ')}`);
}

function isRegularExpression(text: string): boolean {
  try {
    return new RegExp(text, 'u') !== null;
  } catch {
    return false;
  }
}
