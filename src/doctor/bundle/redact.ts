/** What is put where something was taken out. */
const REMOVED = '[removed]';

/** As names of files have it, and RFC 3339. */
const INSTANT = /\d{4}-\d\d-\d\dT[\d-]+Z?/g;
/** Everything from a name that tells of a secret to the end of its value. */
const NAMED_SECRET =
  /\b(client_secret|access_token|refresh_token|device_code|user_code|client_assertion|registration_token|csrf_token|setup_code|password|passphrase)(["']?\s*[=:]\s*["']?)[^\s"'&,;}]+/gi;
const PEM = /-----BEGIN [^-]*PRIVATE KEY-----[^-]*(-----END [^-]*-----)?/g;
const AUTHORIZATION = /\b(Basic|Bearer)\s+[\w.~+/=%-]{6,}/gi;
/**
 * The rest of an address behind its path, which may carry states and codes. What stands before it is looked at from there
 * backwards, and no further than to the "?" or "#" before: forwards, each slash of a long path would be looked behind anew.
 */
const QUERY = /[?#](?<=(?:\bhttps?:\/\/[^\s"'<>?#]+|\/[\w./%-]*)[?#])[^\s"'<>]+/g;
const USERINFO = /(:\/\/)[^\s/@"']+@/g;
/** What follows a path that leads somewhere once. */
const ONE_TIME_PATH = /(\/(?:callback|sign-in|pairings|code\/(?:get|set))\/)[^\s/"'?&]+/g;
const COOKIE = /\b((?:set-)?cookie["']?\s*[:=]\s*["']?)[^\n"']+/gi;
/** Setup codes and user codes: letters in groups of four. */
const LETTER_CODE = /\b[BCDFGHJKLMNPQRSTVWXZ]{4}(-[BCDFGHJKLMNPQRSTVWXZ]{4}){1,3}\b/g;
/** A JWT, or a JWE, its dots and what follows in the group. What has no dot is none, and is matched lest its end be looked for from each "eyJ" in it. */
const JWT = /\beyJ[\w-]{8,}((?:\.[\w-]*)+)?/g;
/** What random bytes look like as base64, base64url or hex, with what dots join to them. */
const RANDOM_RUN = /[\w.~+%=-]{20,}/g;

/**
 * Takes everything out of a text that looks like a secret. The last of several fences: nothing of the kind is meant to get this
 * far, and what other programs wrote into the journal may. It takes time in proportion to the text, whatever is in it.
 * @param known secrets by their values
 * @param kept what looks like a secret and is none: fingerprints, ids
 */
export function redactSecrets(text: string, known: Iterable<string>, kept: ReadonlySet<string>): string {
  let left = text;
  for (const secret of known) for (const form of encodingsOf(secret)) left = left.replaceAll(form, REMOVED);
  return left
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
    .replace(LETTER_CODE, (code) => (kept.has(code) ? code : REMOVED))
    .replace(RANDOM_RUN, (run) =>
      run.split('.').some((piece) => !kept.has(piece) && looksRandom(piece)) ? REMOVED : run,
    );
}

function encodingsOf(secret: string): string[] {
  if (secret.length < 6) return [];
  const bytes = Buffer.from(secret);
  const all = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
  return [...new Set([...all, bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')])];
}

/** So often random characters that are of two kinds change between small, capital and digit; names do less. */
const MIN_CLASS_CHANGES = 4;

/** Names are of one case, and have few digits. */
function looksRandom(run: string): boolean {
  const word = run.replace(/^[a-z_]+=(?=[^=])/, '').replace(INSTANT, '');
  if (word.length < 20) return false;
  if (/^[0-9a-f-]+$/i.test(word))
    return /\d/.test(word) && /[a-f]/i.test(word) && /[0-9a-f]{16}/i.test(word.replaceAll('-', ''));
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(word)).length;
  if (kinds !== 2) return kinds === 3;
  const changes = word.match(/[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[a-zA-Z])/g) ?? [];
  return changes.length >= MIN_CLASS_CHANGES;
}
