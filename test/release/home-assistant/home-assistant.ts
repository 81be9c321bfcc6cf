import { execFile } from 'node:child_process';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { request } from 'undici';
import { root } from '../../project/checkout.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { rememberSecrets } from '../../support/logs.ts';

/** Installs Home Assistant if that is missing; with a folder, it runs with the configuration there. */
export const PROGRAM = join(root, 'scripts/test-home-assistant');

/** Installs Home Assistant if it is missing. @returns the folder that a Debian 13 needs as /opt */
export async function installHomeAssistant(): Promise<string> {
  return (await promisify(execFile)(PROGRAM, [], { timeout: scaleDeadline(600_000) })).stdout.trim();
}

/** Why Home Assistant cannot be installed here; null if it is installed now. */
export function homeAssistantSkipReason(): Promise<string | null> {
  return installHomeAssistant().then(
    () => null,
    (error: { readonly stderr?: string }) => error.stderr?.trim().split('\n').at(-1) ?? String(error),
  );
}

/** A step of a config flow, as the frontend gets it. */
export interface FlowStep {
  readonly flow_id: string;
  readonly type: string;
  readonly step_id?: string;
  readonly url?: string;
  readonly reason?: string;
  readonly title?: string;
  readonly errors?: Readonly<Record<string, string>> | null;
  readonly description_placeholders?: Readonly<Record<string, string>> | null;
}

/** A state of an entity. */
interface EntityState {
  readonly entity_id: string;
  readonly state: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/**
 * Writes the configuration of a Home Assistant with the integration of the hub and that of a cloud.
 * @param integration the folder that HACS would download
 * @param parts of Home Assistant that are set up besides zeroconf
 */
export async function writeConfiguration(folder: string, integration: string, parts: readonly string[]): Promise<void> {
  const components = join(folder, 'custom_components');
  await mkdir(components, { recursive: true });
  await cp(integration, join(components, 'latchkey'), { recursive: true });
  await cp(join(import.meta.dirname, 'demo_cloud'), join(components, 'demo_cloud'), { recursive: true });
  const lines = ['homeassistant:', '  name: Test', 'logger:', '  default: info', 'zeroconf:'];
  await writeFile(join(folder, 'configuration.yaml'), [...lines, ...parts.map((part) => `${part}:`), ''].join('\n'));
}

/** What a person does in the frontend of a running Home Assistant, by the frontend's own API. */
export class HomeAssistant {
  readonly #url: string;
  #tokens: Tokens | null = null;
  /** On the monotonic clock, in ms. */
  #obtained = 0;

  /** @param url such as `http://127.0.0.1:8123` */
  constructor(url: string) {
    this.#url = url;
  }

  /** Creates the owner, as the first visit of the frontend does. */
  async onboard(): Promise<void> {
    const client_id = `${this.#url}/`;
    const user = { client_id, name: 'Owner', username: 'owner', password: 'a password of the test', language: 'en' };
    const { auth_code } = await this.#send<{ auth_code: string }>('POST', '/api/onboarding/users', user);
    const form = new URLSearchParams({ grant_type: 'authorization_code', code: auth_code, client_id });
    await this.#obtain(form);
  }

  async #obtain(form: URLSearchParams): Promise<void> {
    const obtained = performance.now();
    const tokens = await this.#request<Tokens>('POST', '/auth/token', form, {});
    this.#tokens = { ...this.#tokens, ...tokens };
    this.#obtained = obtained;
    rememberSecrets([tokens.access_token, this.#tokens.refresh_token]);
  }

  /** The frontend's own access token, which lives half an hour; empty before there is one. */
  async #accessToken(): Promise<string> {
    if (this.#tokens === null) return '';
    if (performance.now() - this.#obtained > RENEWAL_AGE) {
      const { refresh_token } = this.#tokens;
      await this.#obtain(
        new URLSearchParams({ grant_type: 'refresh_token', refresh_token, client_id: `${this.#url}/` }),
      );
    }
    return this.#tokens.access_token;
  }

  /** Whether it has started. */
  async isRunning(): Promise<boolean> {
    return this.#send<{ state: string }>('GET', '/api/config').then(
      ({ state }) => state === 'RUNNING',
      () => false,
    );
  }

  /** @param context such as `entry_id` of a reconfiguration */
  startFlow(handler: string, context: Readonly<Record<string, string>> = {}): Promise<FlowStep> {
    return this.#send('POST', '/api/config/config_entries/flow', { handler, ...context });
  }

  /** Submits a form, or chooses from a menu. */
  step(flow: string, input: Readonly<Record<string, unknown>> = {}): Promise<FlowStep> {
    return this.#send('POST', `/api/config/config_entries/flow/${flow}`, input);
  }

  /** The step at which a flow is. */
  flow(flow: string): Promise<FlowStep> {
    return this.#send('GET', `/api/config/config_entries/flow/${flow}`);
  }

  /** Opens an address of this Home Assistant in a browser without a session. */
  async visit(url: string): Promise<string> {
    const { statusCode, body } = await request(url);
    const text = await body.text();
    if (statusCode >= 400) throw new Error(`${url}: HTTP ${statusCode}: ${text}`);
    return text;
  }

  /** The flows that wait for a person. */
  flows(): Promise<readonly { flow_id: string; handler: string; context: { source: string } }[]> {
    return this.#command('config_entries/flow/progress');
  }

  entries(): Promise<readonly { entry_id: string; domain: string; state: string; reason: string | null }[]> {
    return this.#command('config_entries/get');
  }

  async issues(): Promise<
    readonly { issue_id: string; domain: string; translation_key: string; learn_more_url: string }[]
  > {
    return (await this.#command<{ issues: [] }>('repairs/list_issues')).issues;
  }

  /** Makes an integration ask for its state now. */
  async updateEntity(entity_id: string): Promise<void> {
    await this.#send('POST', '/api/services/homeassistant/update_entity', { entity_id });
  }

  async reload(entry: string): Promise<void> {
    await this.#send('POST', `/api/config/config_entries/entry/${entry}/reload`);
  }

  states(): Promise<readonly EntityState[]> {
    return this.#send('GET', '/api/states');
  }

  async #send<Result>(method: 'GET' | 'POST', path: string, content?: object): Promise<Result> {
    const token = await this.#accessToken();
    return this.#request(method, path, content, token === '' ? {} : { authorization: `Bearer ${token}` });
  }

  async #request<Result>(
    method: 'GET' | 'POST',
    path: string,
    content: object | undefined,
    credentials: Readonly<Record<string, string>>,
  ): Promise<Result> {
    const isForm = content instanceof URLSearchParams;
    const { statusCode, body } = await request(this.#url + path, {
      method,
      headers: {
        ...credentials,
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        // As the frontend says where it is.
        'HA-Frontend-Base': this.#url,
      },
      ...(content !== undefined && { body: isForm ? content.toString() : JSON.stringify(content) }),
    });
    const text = await body.text();
    if (statusCode >= 400) throw new Error(`${method} ${path}: HTTP ${statusCode}: ${text}`);
    return JSON.parse(text) as Result;
  }

  /** Sends one command on a WebSocket of its own. */
  async #command<Result>(type: string): Promise<Result> {
    const access_token = await this.#accessToken();
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/api/websocket`);
    try {
      return await new Promise<Result>((resolve, reject) => {
        socket.addEventListener('error', () => reject(new Error(`${type}: the connection failed`)));
        socket.addEventListener('close', () => reject(new Error(`${type}: the connection was closed`)));
        socket.addEventListener('message', ({ data }) => {
          const message = JSON.parse(String(data));
          if (message.type === 'auth_required') {
            socket.send(JSON.stringify({ type: 'auth', access_token }));
          } else if (message.type === 'auth_ok') socket.send(JSON.stringify({ id: 1, type }));
          else if (message.success === true) resolve(message.result);
          else reject(new Error(`${type}: ${JSON.stringify(message)}`));
        });
      });
    } finally {
      socket.close();
    }
  }
}

/** In ms. */
const RENEWAL_AGE = 20 * 60_000;

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}
