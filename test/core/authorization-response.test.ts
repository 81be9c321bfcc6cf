import { describe, expect, test } from 'vitest';
import {
  parseAuthorizationResponse,
  parsePastedAddress,
  parseStatefulResponse,
} from '../../src/core/pairings/authorization-response.ts';
import { Secret } from '../../src/core/secret.ts';

const long = (length: number) => 'x'.repeat(length);

describe('authorization response', () => {
  const parse = (query: string) => parseAuthorizationResponse(new URLSearchParams(query));

  test('a response has a code, an error or nothing, and names its issuer or does not', () => {
    const issuer = 'https://portal.example';
    expect(parse('code=abc')).toStrictEqual({ kind: 'code', code: new Secret('abc') });
    expect(parse(`code=abc&iss=${issuer}`)).toStrictEqual({ kind: 'code', code: new Secret('abc'), issuer });
    expect(parse('error=access_denied&x=y')).toStrictEqual({ kind: 'error', error: 'access_denied' });
    expect(parse(`error=access_denied&iss=${issuer}`)).toStrictEqual({ kind: 'error', error: 'access_denied', issuer });
    for (const query of ['', 'x=y', 'code=', 'error=', `iss=${issuer}`])
      expect(parse(query), query).toStrictEqual({ kind: 'nothing' });
  });

  test.each(['code=a&code=b', 'error=a&error=b', 'code=a&error=b', 'code=a&iss=b&iss=b'])(
    'a response with a repeated parameter is invalid: %s',
    (query) => {
      expect(parse(query)).toBeNull();
    },
  );

  test('a response with a code or an error that is too long is invalid', () => {
    expect(parse(`code=${long(4096)}`)).toMatchObject({ kind: 'code' });
    expect(parse(`code=${long(4097)}`)).toBeNull();
    expect(parse(`error=${long(256)}`)).toMatchObject({ kind: 'error' });
    expect(parse(`error=${long(257)}`)).toBeNull();
  });
});

describe('authorization response that names its request', () => {
  const parse = (query: string) => parseStatefulResponse(new URLSearchParams(query));

  test('it needs exactly one state, which is not too long, and a valid response', () => {
    const response = { kind: 'code', code: new Secret('abc') };
    expect(parse('state=s&code=abc')).toEqual({ state: 's', response });
    expect(parse(`state=${long(512)}&code=abc`)).toEqual({ state: long(512), response });
    for (const query of ['code=abc', 'state=&code=abc', 'state=s&state=s&code=abc', `state=${long(513)}&code=abc`])
      expect(parse(query), query).toBeNull();
    expect(parse('state=s&code=a&code=b')).toBeNull();
  });
});

describe('address that a person pasted', () => {
  const response = { state: 's', response: { kind: 'code', code: new Secret('abc') } };

  test.each([
    'https://hub.example/callback?state=s&code=abc',
    '  https://hub.example/callback?state=s&code=abc#top \n',
    'https://hub.example/callback?state=s&code=abc#top\nsecond line',
    '?state=s&code=abc',
    'state=s&code=abc',
    ' state=s&code=abc\n',
  ])('its response is found in %j', (text) => {
    expect(parsePastedAddress(text)).toEqual(response);
  });

  test('the address continues up to a second question mark and beyond', () => {
    expect(parsePastedAddress('https://hub.example/?x=?&state=s&code=abc')).toEqual(response);
  });

  test.each(['', 'https://hub.example/callback', 'https://hub.example/?state=s', '#state=s&code=abc', 'hello'])(
    'no response is found in %j',
    (text) => {
      expect(parsePastedAddress(text)).toBeNull();
    },
  );
});
