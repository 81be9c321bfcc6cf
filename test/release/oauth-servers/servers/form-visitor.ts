import { request } from 'undici';
import { FORM_MEDIA_TYPE } from '../../../../src/system/http/form.ts';

/** Where a visit ended: at a URL outside the server, without text, or at the server's last page. */
export interface VisitEnd {
  readonly url: string;
  readonly text: string | null;
}

/** More pages than any login has. */
const MAX_REQUESTS = 20;

/**
 * Does what a browser without scripts does: keeps cookies, follows redirects within the server, and submits the only or
 * first form of each page until a page has none or a redirect leaves the server.
 * @param answers the values of fields by name. Buttons and check boxes are only sent if they are named here.
 * @throws Error for a page with a status of 400 or more
 */
export async function visitForms(start: string, answers: Readonly<Record<string, string>>): Promise<VisitEnd> {
  const { origin } = new URL(start);
  const cookies = new Map<string, string>();
  let url = start;
  let form: URLSearchParams | null = null;
  for (let requests = 0; requests < MAX_REQUESTS; requests++) {
    const response = await request(url, {
      method: form === null ? 'GET' : 'POST',
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form !== null && { 'content-type': FORM_MEDIA_TYPE, origin, referer: url }),
      },
      ...(form !== null && { body: form.toString() }),
    });
    for (const line of [response.headers['set-cookie'] ?? []].flat()) keepCookie(cookies, line);
    const text = await response.body.text();
    const { location } = response.headers;
    if (typeof location === 'string') {
      url = new URL(location, url).href;
      form = null;
      if (new URL(url).origin !== origin) return { url, text: null };
      continue;
    }
    if (response.statusCode >= 400) throw new Error(`${url} got HTTP ${response.statusCode}: ${text}`);
    const next = readForm(text, answers);
    if (next === null) return { url, text };
    url = new URL(next.action, url).href;
    form = next.fields;
  }
  throw new Error(`no end after ${MAX_REQUESTS} requests, last ${url}`);
}

function keepCookie(cookies: Map<string, string>, line: string): void {
  const [pair = ''] = line.split(';');
  const at = pair.indexOf('=');
  const value = pair.slice(at + 1);
  // A server deletes a cookie with an empty value and a time in the past.
  if (value === '' || value === '""') cookies.delete(pair.slice(0, at));
  else cookies.set(pair.slice(0, at), value);
}

/** The first form of a page, filled in; null if it has none. */
function readForm(
  html: string,
  answers: Readonly<Record<string, string>>,
): { readonly action: string; readonly fields: URLSearchParams } | null {
  const [, attributes, content = ''] = /<form\b([^>]*)>(.*?)<\/form>/s.exec(html) ?? [];
  if (attributes === undefined) return null;
  const fields = new URLSearchParams();
  for (const [, input = ''] of content.matchAll(/<(?:input|button)\b([^>]*)>/gs)) {
    const name = attribute(input, 'name');
    if (name === null) continue;
    const value = answers[name] ?? (attribute(input, 'type') === 'hidden' ? attribute(input, 'value') : null);
    if (value !== null) fields.set(name, value);
  }
  return { action: attribute(attributes, 'action') ?? '', fields };
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&quot;': '"',
  '&#34;': '"',
  '&#39;': "'",
  '&#x27;': "'",
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
};

function attribute(tag: string, name: string): string | null {
  const [, value] = new RegExp(`\\b${name}="([^"]*)"`).exec(tag) ?? [];
  return value?.replaceAll(/&#?\w+;/g, (entity) => ENTITIES[entity] ?? entity) ?? null;
}
