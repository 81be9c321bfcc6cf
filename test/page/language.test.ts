import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendMessagePage } from '../../src/page/document.ts';
import { pageContext } from '../../src/page/page-context.ts';

const app = fastify();

beforeAll(() => {
  app.get('/', async (request, reply) =>
    sendMessagePage(reply, 200, pageContext('Cellar', request), { severity: 'neutral', heading: 'x', text: 'x' }),
  );
});

afterAll(() => app.close());

async function languageFor(header: string | undefined) {
  const headers = header === undefined ? {} : { 'accept-language': header };
  const response = await app.inject({ url: '/', headers });
  expect(response.statusCode).toBe(200);
  expect(response.headers['vary']).toBe('accept-language');
  return /<html lang="(\w+)"/.exec(response.body)?.[1];
}

describe('the language of a page', () => {
  test.each([
    [undefined, 'en'],
    ['DE-de', 'de'],
    ['en-GB,en;q=0.9,de;q=0.8', 'en'],
    ['fr, de;q=0.5', 'de'],
    ['*', 'en'],
    [',,;;=,', 'en'],
    ['deutsch', 'en'],
    ['toString,__proto__,constructor', 'en'],
  ])('the page is shown for Accept-Language %j in %s', async (header, language) => {
    expect(await languageFor(header)).toBe(language);
  });
});
