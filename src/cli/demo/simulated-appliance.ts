import { Agent, request } from 'undici';
import * as v from 'valibot';
import type { IssuedCredentials } from '../../core/administration.ts';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';

/** The outcome of one token request and one use of the token. */
export type TokenUseOutcome =
  /** The cloud accepted the token. `fresh`: it is not the token of the previous request. */
  | { readonly kind: 'good'; readonly fresh: boolean; readonly expiresIn: number; readonly user: string }
  | { readonly kind: 'not_paired' }
  /** Not an error: on a slow machine the token expired on its way to the cloud, or the hub asked to retry later. */
  | { readonly kind: 'late'; readonly reason: string }
  | { readonly kind: 'bad'; readonly reason: string };

const tokenResponse = v.object({ access_token: v.string(), expires_in: v.number() });
const whoami = v.object({ user: v.string() });

/**
 * An appliance as its maker would write it, without any code of Latchkey: it requests a token from a standard token
 * endpoint with `client_credentials`, trusts only the hub's CA, and sends the token to the cloud.
 */
export class SimulatedAppliance implements AsyncDisposable {
  readonly name: string;
  readonly #credentials: IssuedCredentials;
  readonly #apiUrl: string;
  readonly #agent: Agent;
  readonly #clock: Clock;
  #lastToken = '';

  /**
   * @param ca the hub's CA, PEM
   * @param apiUrl the base URL of the cloud's API
   * @param clock used to find out whether a token that the cloud rejected had expired meanwhile
   */
  constructor(credentials: IssuedCredentials, ca: string, apiUrl: string, clock: Clock) {
    this.name = credentials.name;
    this.#credentials = credentials;
    this.#apiUrl = apiUrl;
    this.#clock = clock;
    this.#agent = new Agent({ connect: { ca } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }

  /** Requests a token and sends it to the cloud API. */
  async useToken(): Promise<TokenUseOutcome> {
    try {
      const { clientId, clientSecret, tokenEndpoint } = this.#credentials;
      const requestedAt = this.#clock.now().uptime;
      const basic = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
      const response = await request(tokenEndpoint, {
        method: 'POST',
        dispatcher: this.#agent,
        headers: { authorization: `Basic ${basic}`, 'content-type': FORM_MEDIA_TYPE },
        body: 'grant_type=client_credentials',
      });
      const body = await response.body.json();
      if (response.statusCode !== 200) return rejectionOutcome(response.statusCode, body);
      const { access_token, expires_in } = v.parse(tokenResponse, body);
      const fresh = access_token !== this.#lastToken;
      this.#lastToken = access_token;
      const cloud = await request(`${this.#apiUrl}/api/whoami`, {
        headers: { authorization: `Bearer ${access_token}` },
      });
      const cloudBody = await cloud.body.json();
      if (cloud.statusCode !== 200) {
        const hasExpired = this.#clock.now().uptime - requestedAt >= expires_in * 1000;
        return hasExpired
          ? { kind: 'late', reason: `the token (valid for ${expires_in} s) expired before it reached the cloud` }
          : { kind: 'bad', reason: `the cloud rejected the token: HTTP ${cloud.statusCode}` };
      }
      return { kind: 'good', fresh, expiresIn: expires_in, user: v.parse(whoami, cloudBody).user };
    } catch (error) {
      return { kind: 'bad', reason: messageOf(error) };
    }
  }
}

function rejectionOutcome(status: number, body: unknown): TokenUseOutcome {
  const error = v.is(v.object({ error: v.string() }), body) ? body.error : 'no reason given';
  if (error === 'invalid_grant') return { kind: 'not_paired' };
  const reason = `the hub responded ${status} ${error}`;
  return { kind: error === 'temporarily_unavailable' ? 'late' : 'bad', reason };
}
