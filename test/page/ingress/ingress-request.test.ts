import { describe, expect, it } from 'vitest';
import { addBasePath, redirectBelow } from '../../../src/page/ingress/base-path.ts';
import { isPermittedUser, readIngressRequest } from '../../../src/page/ingress/ingress-request.ts';

/** As Node passes a header on that was sent as UTF-8. */
const asReceived = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

describe('the path of a reverse proxy', () => {
  it.each([
    ['/', ''],
    ['/api/hassio_ingress/1yzfQx-Zq_3B', '/api/hassio_ingress/1yzfQx-Zq_3B'],
    ['/hub/', '/hub'],
  ])('the path %j is accepted', (path, basePath) => {
    expect(readIngressRequest({ 'x-ingress-path': path })?.basePath).toBe(basePath);
  });

  it.each([
    undefined,
    '',
    'hub',
    '//evil.example',
    '/a//b',
    '/a/../b',
    '/a"onload=',
    '/a%2fb',
    '/a\\b',
    '/a?b',
    'https://evil.example/a',
    '/ü',
    `/${'a'.repeat(256)}`,
  ])('the path %j is rejected', (path) => {
    expect(readIngressRequest(path === undefined ? {} : { 'x-ingress-path': path })).toBeNull();
  });
});

describe('the user of a reverse proxy', () => {
  const read = (headers: Record<string, string>) => readIngressRequest({ 'x-ingress-path': '/', ...headers });

  it('the display name is used, otherwise the login name, and no name is unknown', () => {
    const names = { 'x-remote-user-name': 'anna', 'x-remote-user-display-name': asReceived('Anna Müller') };
    expect(read({ 'x-remote-user-id': 'f3a1', ...names })).toMatchObject({
      userId: 'f3a1',
      loginName: 'anna',
      userName: 'Anna Müller',
    });
    expect(read({ 'x-remote-user-name': 'anna' })).toMatchObject({ userId: 'anna', userName: 'anna' });
    expect(read({ 'x-remote-user-id': 'f3a1' })).toMatchObject({ userId: 'f3a1', userName: null });
    expect(read({})).toMatchObject({ userId: '', userName: null });
  });

  it.each([
    ['line breaks and tabs', 'Anna\r\n\tlevel=error', 'Anna level=error'],
    ['characters that turn text around', 'Anna\u202egro.live', 'Anna gro.live'],
    ['only spaces', ' \u00a0\u3000 ', null],
    ['a character of two code units at the limit', `${'a'.repeat(63)}😀b`, `${'a'.repeat(63)}😀`],
  ])('a name with %s is cleaned', (_, sent, name) => {
    expect(read({ 'x-remote-user-display-name': asReceived(sent) })?.userName).toBe(name);
  });

  it.each(['anna\u200b', '\u00adanna', ' anna', 'Anna'])(
    'another account whose name looks like a permitted one is not permitted: %j',
    (name) => {
      const request = read({ 'x-remote-user-name': asReceived(name) });
      expect(request && isPermittedUser(request, ['anna'])).toBe(false);
      expect(request && isPermittedUser(request, [name])).toBe(true);
    },
  );

  it('a name that is not UTF-8 is read as Latin-1', () => {
    expect(read({ 'x-remote-user-name': 'J\u00f6rg' })?.userName).toBe('Jörg');
  });
});

describe('a base path', () => {
  it('the base path comes before the hub’s own paths, and before nothing else', () => {
    const html = '<a href="/x">/y</a><form action="/"></form><script src="/s.js"></script><button formaction="/f">';
    const others = '<a href="https://portal.example/">1</a><a href="#main">2</a><a href="//evil.example">3</a>';
    expect(addBasePath(html + others, '/hub')).toBe(
      `<a href="/hub/x">/y</a><form action="/hub/"></form><script src="/hub/s.js"></script><button formaction="/hub/f">${others}`,
    );
    expect(addBasePath(html, '')).toBe(html);
    expect(['/x', 'https://portal.example/', '//evil.example'].map((to) => redirectBelow(to, '/hub'))).toEqual([
      '/hub/x',
      'https://portal.example/',
      '//evil.example',
    ]);
  });
});
