import { describe, expect, test } from 'vitest';
import { parseAuthorizationCode, parseLoginEndpoints } from '../../src/portal/helper/wire.ts';
import { parseTokenResponse } from './token-bodies.ts';

const whole = { access_token: 'aaa', refresh_token: 'rrr', expires_in: 3600, token_type: 'bearer', scope: 'A B' };
const tokens = (changes: Record<string, unknown>) => parseTokenResponse(JSON.stringify({ ...whole, ...changes }));
const longLink = JSON.stringify({ authorize_url: 'a'.repeat(8193), code_url: 'b', accesstoken_request_url: 'c' });
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

describe('token response', () => {
  test('a token response gives both tokens, the scope and the lifetime in ms, whatever else it has', () => {
    const parsed = tokens({ foo: { bar: [1, 2, 3] }, token_type: 'Bearer' });
    expect(parsed).toMatchObject({ scope: 'A B', lifetime: 3_600_000 });
    expect(parsed?.accessToken.reveal()).toBe('aaa');
    expect(parsed?.refreshToken?.reveal()).toBe('rrr');
  });

  test.each([...[null, '', [['A']], 'A'.repeat(4097), 'A\r\nB', 'A"B', 'A\\B', 'Wärme']])(
    'a token response with the scope %j has no scope',
    (scope) => {
      expect(tokens({ scope })).toMatchObject({ scope: null });
    },
  );

  test.each([
    [59.5, 59.5],
    ['1800', 1800],
    ['1800.0', 1800],
    [100_000_000, 365 * 86_400],
    [1, 1],
  ])('a token response with expires_in %j has a lifetime of %d s', (expires_in, seconds) => {
    expect(tokens({ expires_in })).toMatchObject({ lifetime: 1000 * seconds });
  });

  test.each([
    [0, 999],
    ['0', 999],
    [0.5, 999],
    [-1, 999],
    ['-1.0', 999],
    // A time, milliseconds, and beyond doubles.
    [1_764_400_000, 3_600_000],
    ['31536000000', 3_600_000],
    [1e300, 3_600_000],
  ])('an expires_in of %j can not be true: what is configured wins, otherwise it is told', (expires_in, lifetime) => {
    const told = Number(expires_in);
    expect(tokens({ expires_in })).toMatchObject({ lifetime, impossibleLifetime: told });
    const configured = parseTokenResponse(JSON.stringify({ ...whole, expires_in }), 600_000);
    expect([configured?.lifetime, configured?.impossibleLifetime]).toEqual([600_000, undefined]);
    const beyond = JSON.stringify(whole).replace('3600', '1e400');
    expect(parseTokenResponse(beyond)).toMatchObject({ impossibleLifetime: Number.POSITIVE_INFINITY });
  });

  test('a configured lifetime does not win over what the response says, and counts where it says nothing', () => {
    const lifetimes = [7200, null, undefined, 'soon'].map(
      (expires_in) => parseTokenResponse(JSON.stringify({ ...whole, expires_in }), 600_000)?.lifetime,
    );
    expect(lifetimes).toEqual([7_200_000, 600_000, 600_000, 600_000]);
  });

  test('a token response in a form is read, and a page is not', () => {
    const form = String(new URLSearchParams({ ...whole, expires_in: '3600', access_token: 'a+/=&a' }));
    const parsed = parseTokenResponse(`${form}\n`);
    expect(parsed).toMatchObject({ scope: 'A B', lifetime: 3_600_000 });
    expect([parsed?.accessToken.reveal(), parsed?.refreshToken?.reveal()]).toEqual(['a+/=&a', 'rrr']);
    for (const page of [`<p>${form}</p>`, `please: ${form}`, `${form} ok`]) expect(parseTokenResponse(page)).toBeNull();
  });

  test.each([undefined, null, '', 'soon', '3600 s', true, [[]], {}])(
    'a token response with expires_in %j has a lifetime of one hour, and keeps its tokens',
    (expires_in) => {
      const parsed = tokens({ expires_in });
      expect(parsed).toMatchObject({ lifetime: 3_600_000 });
      expect(parsed?.refreshToken?.reveal()).toBe('rrr');
    },
  );

  test.each<[Record<string, unknown>, number]>([
    [{ refresh_token_expires_in: '604800' }, 604_800],
    [{ refresh_token_expires_in: 1 }, 1],
    [{ refresh_token_expires_in: 1.000_000_1 }, 1],
    [{ refresh_token_expires_in: 1e300 }, 3650 * 86_400],
    [{ refresh_token_expires_in: '59.5' }, 59.5],
    [{ refresh_token_expires_in: '99999999999' }, 3650 * 86_400],
    [{ refresh_expires_in: 1800 }, 1800],
    [{ refresh_token_expires_in: 60, refresh_expires_in: 1800 }, 60],
    [{ refresh_token_expires_in: 'soon', refresh_expires_in: 1800 }, 1800],
  ])('a token response with %j gives the lifetime of its refresh token: %d s', (changes, seconds) => {
    expect(tokens(changes)).toMatchObject({ lifetime: 3_600_000, refreshTokenLifetime: 1000 * seconds });
  });

  describe.each(['refresh_token_expires_in', 'refresh_expires_in'])('the member %s', (member) => {
    test.each([...[undefined, null, 0, 0.5, -1, '', '7d', '0x10', '1e3', '59.', true, [[3600]], '3600\n']])(
      'a token response with the value %j has no lifetime of its refresh token, and keeps its tokens',
      (value) => {
        const parsed = tokens({ [member]: value });
        expect(parsed).not.toHaveProperty('refreshTokenLifetime');
        expect(parsed?.refreshToken?.reveal()).toBe('rrr');
      },
    );
  });

  test.each([
    ['a signed JWT', 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ1In0.c2ln_-Zx'],
    ['an encrypted JWT', 'eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVy.dGFn'],
    ['a JWT of 16384 characters', `a.${'b'.repeat(16_380)}.c`],
  ])('a token response with %s as its ID token gives it unchanged, and does not print it', (_, id_token) => {
    const parsed = tokens({ id_token });
    expect(parsed?.idToken?.reveal()).toBe(id_token);
    expect(JSON.stringify(parsed)).not.toContain(id_token);
  });

  test.each([
    ...[null, 7, [['a.b.c']], 'a.b', '.b.c', 'a.b.c.d', ' a.b.c', 'a.b.c\n', 'a.b.c\r\nX: 1', 'a.b.é', 'a.b+/.c'],
    `a.${'b'.repeat(16_381)}.c`,
  ])('a token response with the id_token %.40j has no ID token, and keeps its tokens', (id_token) => {
    const parsed = tokens({ id_token });
    expect(parsed).not.toHaveProperty('idToken');
    expect(parsed?.accessToken.reveal()).toBe('aaa');
    expect(parsed?.refreshToken?.reveal()).toBe('rrr');
  });

  test.each([undefined, null, '', 7, {}])(
    'a token response with the refresh_token %j has no refresh token',
    (refresh_token) => {
      expect(tokens({ refresh_token })).toMatchObject({ refreshToken: null });
    },
  );

  test.each([undefined, null, '', 7, {}, [['aaa']]])(
    'a token response with the access_token %j is invalid',
    (access_token) => {
      expect(tokens({ access_token })).toBeNull();
    },
  );

  // RFC 6749, appendix A.12 and A.17: 1*VSCHAR. A line break would inject a header into an appliance's request.
  test.each([
    ['a line break and a header', 'a\r\nX-Injected: 1'],
    ['a line break at its end', 'a\n'],
    ['a zero', 'a\u0000'],
    ['a delete character', 'a\u007f'],
    ['a letter beyond ASCII', 'aé'],
    ['more than 16 KiB', 'a'.repeat(16_385)],
  ])('a token response with %s in one of its tokens is invalid', (_, odd) => {
    expect(tokens({ access_token: odd })).toBeNull();
    expect(tokens({ refresh_token: odd })).toBeNull();
  });

  test('a token response may have tokens of 16 KiB with all permitted characters', () => {
    const all = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 0x20 + index));
    const long = all.repeat(200).slice(0, 16_384);
    const parsed = tokens({ access_token: long, refresh_token: long });
    expect(parsed?.accessToken.reveal()).toBe(long);
    expect(parsed?.refreshToken?.reveal()).toBe(long);
  });

  test('a token response cannot reach a prototype', () => {
    const sly = '{"__proto__":{"access_token":"evil","polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    expect(parseTokenResponse(sly)).toBeNull();
    expect(parseTokenResponse(`{"access_token":"aaa","__proto__":{"refresh_token":"evil"}}`)).toMatchObject({
      refreshToken: null,
    });
    expect('polluted' in {}).toBe(false);
  });

  test.each(['', 'null', '7', '"text"', '[]', '{', '<html>', nested(100_000), `{"access_token":${nested(100_000)}}`])(
    'the text %.30s is not a token response',
    (body) => {
      expect(parseTokenResponse(body)).toBeNull();
    },
  );
});

describe('helper configuration', () => {
  test('a helper configuration may have escaped slashes and ampersands', () => {
    const body = String.raw`{"authorize_url":"https:\/\/portal.example\/sso\/authorize?response_type=code\u0026client_id=c\u0026state=s",
      "code_url":"https:\/\/api.portal.example\/code\/get\/c?state=s","accesstoken_request_url":"https:\/\/portal.example\/sso\/token","more":1}`;
    expect(parseLoginEndpoints(body)).toEqual({
      authorizeUrl: 'https://portal.example/sso/authorize?response_type=code&client_id=c&state=s',
      codeUrl: 'https://api.portal.example/code/get/c?state=s',
      tokenUrl: 'https://portal.example/sso/token',
    });
  });

  test.each(['', '{}', 'null', '[]', '{"authorize_url":"a","code_url":"b"}', nested(100_000), longLink])(
    'the text %.30s is not a helper configuration',
    (body) => {
      expect(parseLoginEndpoints(body)).toBeNull();
    },
  );
});

test('an authorization code is a text of 1 to 4096 permitted characters', () => {
  expect(parseAuthorizationCode('{"code":"c\\/1","more":1}')?.reveal()).toBe('c/1');
  for (const code of ['', null, 7, ['c'], 'c'.repeat(4097), 'c\r\n', 'c\u001b[2J', 'é'])
    expect(parseAuthorizationCode(JSON.stringify({ code }))).toBeNull();
  expect(parseAuthorizationCode('')).toBeNull();
});
