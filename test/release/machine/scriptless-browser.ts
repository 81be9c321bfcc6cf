import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCurl } from '../../netns/hub-on-host.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { stateFolder } from '../../support/state-folder.ts';
import type { InstalledHub } from './installed-hub.ts';

/** A response of the hub's page. */
interface PageResponse {
  readonly status: number;
  /** The target of a redirect, without the origin; otherwise empty. */
  readonly location: string;
  readonly text: string;
}

/**
 * A browser without scripts on another host of the hub's network, which stores the hub's cookie. It follows no
 * redirects.
 */
export class ScriptlessBrowser implements Disposable {
  readonly origin: string;
  readonly #hub: InstalledHub;
  readonly #folder: ReturnType<typeof stateFolder>;

  private constructor(hub: InstalledHub, folder: ReturnType<typeof stateFolder>) {
    this.origin = `https://${hub.host.address}:8443`;
    this.#hub = hub;
    this.#folder = folder;
  }

  static async open(hub: InstalledHub): Promise<ScriptlessBrowser> {
    const folder = stateFolder();
    await writeFile(join(folder.path, 'ca.pem'), await runCurl(hub.peer, [`http://${hub.host.address}:8480/ca.pem`]));
    return new ScriptlessBrowser(hub, folder);
  }

  get(path: string): Promise<PageResponse> {
    return this.#ask(path);
  }

  /** Submits a form as the hub's own page does. */
  post(path: string, form: Readonly<Record<string, string>>): Promise<PageResponse> {
    const own = ['--header', `origin: ${this.origin}`, '--header', 'sec-fetch-site: same-origin'];
    const fields = Object.entries(form).flatMap(([name, value]) => ['--data-urlencode', `${name}=${value}`]);
    return this.#ask(path, ...own, ...fields);
  }

  /** The CSRF token that the forms of this session carry. */
  async csrf(): Promise<string> {
    const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec((await this.get('/')).text) ?? [];
    rememberSecrets([csrf]);
    return csrf;
  }

  async #ask(path: string, ...more: string[]): Promise<PageResponse> {
    const jar = join(this.#folder.path, 'cookies');
    const session = ['--cacert', join(this.#folder.path, 'ca.pem'), '--cookie', jar, '--cookie-jar', jar];
    const format = ['--write-out', '\n%{http_code} %{redirect_url}'];
    const output = await runCurl(this.#hub.peer, [...session, ...format, ...more, `${this.origin}${path}`]);
    const [, text = '', status, location = ''] = /^([\s\S]*)\n(\d+) (.*)$/.exec(output) ?? [];
    return { status: Number(status), location: location.replace(this.origin, ''), text };
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}
