import { Agent, request } from 'undici';
import * as v from 'valibot';
import type { RouteInput, RouteResponse } from '../../control/routes.ts';
import { joinNames } from '../../core/connections/connection.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import { findNamed } from '../../core/name.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import { FORM_MEDIA_TYPE } from '../../system/http/form.ts';
import { readProtectedFile } from '../../system/secret-file.ts';
import { fetchPinnedCa, HUB_TIMEOUT } from '../hub-trust.ts';

/** What `latchkey appliance add --json` prints. */
const credentialsSchema = v.object({
  client_id: v.string(),
  client_secret: v.string(),
  token_endpoint: v.pipe(v.string(), v.url()),
  ca_fingerprint: v.string(),
});
type Credentials = v.InferOutput<typeof credentialsSchema>;

const connectionsSchema = v.object({ connections: v.array(v.object({ name: v.string(), title: v.string() })) });
const tokenSchema = v.object({
  access_token: v.string(),
  token_type: v.literal('Bearer'),
  expires_in: v.number(),
  scope: v.exactOptional(v.string()),
});
const errorSchema = v.object({ error_description: v.string() });

/**
 * Requests a token as an appliance does: this user needs its credentials, and no access to the control socket.
 * @param file with the credentials; other users can't read it. Or the name of a systemd credential
 * @throws Failure `config_invalid`, `hub_not_running`, `not_allowed`, `connection_unknown`, `token_unavailable`
 */
export async function requestToken(
  file: string,
  { name, min_ttl = 0, rejected = null }: RouteInput<'token'>,
): Promise<RouteResponse<'token'>> {
  const credentials = await readCredentials(file);
  const { origin, protocol, hostname } = new URL(credentials.token_endpoint);
  if (protocol !== 'https:' && !isLoopbackHost(hostname)) {
    throw new Failure(
      'config_invalid',
      '--credentials: token_endpoint: the secret would cross the network in the clear: use https',
    );
  }
  const ca = protocol === 'https:' ? await fetchPinnedCa(origin, credentials.ca_fingerprint) : null;
  const connect = ca === null ? {} : { ca, allowPartialTrustChain: true };
  const dispatcher = new Agent({ connect });
  const send = <Schema extends v.GenericSchema>(path: string, form: Record<string, string>, schema: Schema) =>
    post(`${origin}${path}`, form, credentials, dispatcher, schema);
  try {
    const { connections } = await send('/oauth/connections', {}, connectionsSchema);
    const connection = findNamed(connections, name);
    if (connection === undefined) {
      const names = joinNames(connections.map((used) => used.name));
      throw new Failure('connection_unknown', `these credentials are for ${names}, and not for ${name}`);
    }
    if (rejected !== null) await send('/oauth/revoke', { token: rejected }, v.unknown());
    const ttl: Record<string, string> = min_ttl > 0 ? { min_ttl: String(min_ttl) } : {};
    const form = { grant_type: 'client_credentials', ...ttl };
    return await send(`/connections/${connection.name}/oauth/token`, form, tokenSchema);
  } finally {
    await dispatcher.destroy();
  }
}

async function readCredentials(file: string): Promise<Credentials> {
  try {
    const { text } = await readProtectedFile(file, process.cwd(), process.env['CREDENTIALS_DIRECTORY']);
    return v.parse(credentialsSchema, JSON.parse(text));
  } catch (error) {
    // The messages of a parser quote the text.
    const isParsed = error instanceof SyntaxError || error instanceof v.ValiError;
    const problem = isParsed ? 'it must be what "latchkey appliance add NAME --json" prints' : messageOf(error);
    throw new Failure('config_invalid', `--credentials: ${problem}`);
  }
}

/** @throws Failure `hub_not_running`, `token_unavailable` */
async function post<Schema extends v.GenericSchema>(
  url: string,
  form: Record<string, string>,
  { client_id, client_secret }: Credentials,
  dispatcher: Agent,
  schema: Schema,
): Promise<v.InferOutput<Schema>> {
  const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64');
  const { statusCode, body } = await request(url, {
    method: 'POST',
    dispatcher,
    signal: AbortSignal.timeout(HUB_TIMEOUT),
    headers: { authorization: `Basic ${basic}`, 'content-type': FORM_MEDIA_TYPE },
    body: new URLSearchParams(form).toString(),
  }).catch((cause: unknown) => {
    throw new Failure('hub_not_running', `${new URL(url).origin} does not respond as the hub`, { cause });
  });
  const response: unknown = await body.json().catch(() => null);
  const parsed = v.safeParse(schema, response);
  if (statusCode === 200 && parsed.success) return parsed.output;
  const problem = v.is(errorSchema, response)
    ? response.error_description
    : `the hub's response (${statusCode}) is not understood`;
  throw new Failure('token_unavailable', problem);
}
