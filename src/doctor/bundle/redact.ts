/** The replacement for removed text. */
const REMOVED = '[removed]';

/** A time in RFC 3339, or in the form of file names. */
const INSTANT = /\d{4}-\d\d-\d\dT[\d-]+Z?/g;
/** The name of a secret member, with its value. */
const NAMED_SECRET =
  /\b(client_secret|access_token|refresh_token|device_code|user_code|client_assertion|registration_token|csrf_token|setup_code|password|passphrase)(["']?\s*[=:]\s*["']?)[^\s"'&,;}]+/gi;
const PEM = /-----BEGIN [^-]*PRIVATE KEY-----[^-]*(-----END [^-]*-----)?/g;
const AUTHORIZATION = /\b(Basic|Bearer)\s+[\w.~+/=%-]{6,}/gi;
/**
 * The query or fragment of a URL, which may contain states and codes. The lookbehind matches the part before it
 * backwards, at most to the previous "?" or "#": a forward match would scan again from each slash of a long path.
 */
const QUERY = /[?#](?<=(?:\bhttps?:\/\/[^\s"'<>?#]+|\/[\w./%-]*)[?#])[^\s"'<>]+/g;
const USERINFO = /(:\/\/)[^\s/@"']+@/g;
/** The last segment of a one-time address. */
const ONE_TIME_PATH = /(\/(?:callback|sign-in|pairings|code\/(?:get|set))\/)[^\s/"'?&]+/g;
const COOKIE = /\b((?:set-)?cookie["']?\s*[:=]\s*["']?)[^\n"']+/gi;
/** Setup codes and user codes: letters in groups of four. */
const LETTER_CODE = /\b[BCDFGHJKLMNPQRSTVWXZ]{4}(-[BCDFGHJKLMNPQRSTVWXZ]{4}){1,3}\b/g;
/**
 * A JWT or JWE; the group has its dots and what follows. Text without a dot is no JWT. It is matched anyway, so that a
 * long run is not scanned again from each "eyJ" in it.
 */
const JWT = /\beyJ[\w-]{8,}((?:\.[\w-]*)+)?/g;
/** A run that may be random bytes in base64, base64url or hex, with parts that dots join. */
const RANDOM_RUN = /[\w.~+%=-]{20,}/g;

/**
 * Removes everything from a text that looks like a secret. It is the last of several measures: the hub's own texts
 * should contain no secrets, but the journal has lines of other programs. The time is linear in the length of the text,
 * for any content.
 * @param known the values of known secrets
 * @param harmless values that look like secrets but are not: fingerprints, ids
 */
export function redactSecrets(text: string, known: Iterable<string>, harmless: ReadonlySet<string>): string {
  let redacted = text;
  for (const secret of known) for (const form of encodingsOf(secret)) redacted = redacted.replaceAll(form, REMOVED);
  return redacted
    .replace(PEM, REMOVED)
    .replace(COOKIE, `$1${REMOVED}`)
    .replace(NAMED_SECRET, (whole, name: string, between: string) =>
      whole.endsWith('null') ? whole : `${name}${between}${REMOVED}`,
    )
    .replace(AUTHORIZATION, `$1 ${REMOVED}`)
    .replace(USERINFO, `$1${REMOVED}@`)
    .replace(QUERY, `?${REMOVED}`)
    .replace(ONE_TIME_PATH, `$1${REMOVED}`)
    .replace(JWT, (whole, rest?: string) => (rest === undefined ? whole : REMOVED))
    .replace(LETTER_CODE, (code) => (harmless.has(code) ? code : REMOVED))
    .replace(RANDOM_RUN, (run) =>
      run.split('.').some((piece) => !harmless.has(piece) && looksRandom(piece)) ? REMOVED : run,
    );
}

function encodingsOf(secret: string): string[] {
  if (secret.length < 6) return [];
  const bytes = Buffer.from(secret);
  const all = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  return [...new Set([...all, bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')])];
}

/**
 * Random text of two character classes (lower case, upper case, digits) changes its class at least this often; names do
 * not.
 */
const MIN_CLASS_CHANGES = 4;

/** Distinguishes random text from names, which have one case and few digits. */
function looksRandom(run: string): boolean {
  const word = run.replace(/^[a-z_]+=(?=[^=])/, '').replace(INSTANT, '');
  if (word.length < 20) return false;
  if (/^[0-9a-f-]+$/i.test(word))
    return /\d/.test(word) && /[a-f]/i.test(word) && /[0-9a-f]{16}/i.test(word.replaceAll('-', ''));
  const classes = [/[a-z]/, /[A-Z]/, /\d/].filter((characters) => characters.test(word)).length;
  if (classes !== 2) return classes === 3;
  const changes = word.match(/[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[a-zA-Z])/g) ?? [];
  return changes.length >= MIN_CLASS_CHANGES;
}
