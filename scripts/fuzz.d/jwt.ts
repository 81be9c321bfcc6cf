// JWTs that are forged in ways that libraries have accepted in the past.
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { base64url, repeatedText, visibleText } from './texts.ts';

const NO_ALGORITHM = ['{"alg":"none"}', '{"alg":"None","typ":"JWT"}', '{"alg":"nOnE"}', '{}', 'null', '[]'];
const HMAC = ['{"alg":"HS256"}', '{"alg":"HS256","kid":"../../dev/null"}', '{"alg":"HS512"}'];
const OTHER_HEADS = ['{"alg":"RS256"}', '{"alg":"HS256","crit":["x"]}', '{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}'];
const CLAIMS = [
  '',
  '1',
  '[]',
  'null',
  '{',
  '{"jti":null}',
  '{"exp":"x"}',
  '{"exp":1e400}',
  '{"__proto__":{"iss":"x"}}',
];

/**
 * A forged JWT, which must be rejected.
 * @param whole a valid JWT, from which it is made
 * @param keys texts that a server might use as the key of an HMAC by mistake
 */
export function forgedJwt(whole: fc.Arbitrary<string>, keys: readonly string[]): fc.Arbitrary<string> {
  const parts = whole.map((text) => {
    const [head = '', payload = '', signature = ''] = text.split('.');
    return { text, head, payload, signature };
  });
  type Parts = typeof parts extends fc.Arbitrary<infer T> ? T : never;
  const made = <T>(by: fc.Arbitrary<T>, how: (parts: Parts, by: T) => string) =>
    fc.tuple(parts, by).map(([good, one]) => how(good, one));
  const encoded = (texts: readonly string[]) => fc.constantFrom(...texts).map(base64url);
  return fc.oneof(
    made(encoded(NO_ALGORITHM), ({ payload }, head) => `${head}.${payload}.`),
    made(
      encoded([...NO_ALGORITHM, ...OTHER_HEADS]),
      ({ payload, signature }, head) => `${head}.${payload}.${signature}`,
    ),
    made(fc.tuple(encoded(HMAC), fc.constantFrom(...keys)), ({ payload }, [head, key]) => {
      return `${head}.${payload}.${createHmac('sha256', key).update(`${head}.${payload}`).digest('base64url')}`;
    }),
    made(encoded(CLAIMS), ({ head, signature }, payload) => `${head}.${payload}.${signature}`),
    made(fc.nat(2), ({ text }, count) => text.split('.').slice(0, count).join('.')),
    parts.map(({ text, head, signature }) => `${text}.${signature}.${head}`),
    fc.constant('..'),
    visibleText(200),
    repeatedText('A', 12_000),
  );
}
