import type { FaultOptions } from '../../faults/kinds.ts';
import { doesNotApply, fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import { loggedIn } from './checks.ts';

const RESOURCE =
  'RFC 8707, 2: resource: "Indicates the target service or resource to which access is being requested"; the MCP specification demands it in both requests';

/** The first authorization URL of a client that has registered itself. The situation does not apply to any other one. */
async function registeredUrl(sitting: Sitting): Promise<URL> {
  const url = await sitting.authorizeUrl();
  if (sitting.to('register').length === 0)
    doesNotApply('the client did not register itself: see the situation "login-from-the-api"');
  return url;
}

/** Metadata that must not be used. */
function foreign(name: string, right: string, source: string, members: string): GroupSituation {
  const fault: FaultOptions = { kind: 'change_members', endpoint: 'discovery', members, times: null };
  return {
    name,
    right,
    source,
    ownLogin: true,
    faults: [fault],
    async happens(sitting) {
      await sitting.unlessStopped(() => sitting.authorizeUrls.length > 0, 5);
      if (sitting.authorizeUrls.length > 0) fail(`the client used metadata with ${members}`);
      return 'the metadata was read and not used';
    },
  };
}

/** A client that knows nothing but the address of the API, such as one of MCP. */
export const MCP: readonly GroupSituation[] = [
  {
    name: 'login-from-the-api',
    right: 'from the challenge of the API the client finds its metadata and the server, registers itself, and logs in',
    source: 'RFC 9728, 5.1: resource_metadata: "The URL of the protected resource metadata"',
    async happens(sitting) {
      await sitting.authorizeUrl();
      if (sitting.to('register').length === 0) fail('the client did not register itself');
      await loggedIn(sitting);
      const address = sitting.to('discovery')[0]?.logged.url ?? '';
      return `metadata from ${address}, ${sitting.to('register').length} registration, and a login`;
    },
  },
  {
    name: 'resource-parameter',
    source: RESOURCE,
    ownLogin: true,
    right: 'the authorization request and the token request name the API, as its metadata does',
    async happens(sitting) {
      const url = await registeredUrl(sitting);
      const resource = `${sitting.emulator.baseUrl}/api/whoami`;
      const sent = url.searchParams.get('resource');
      if (sent !== resource) fail(`resource in the authorization request was ${sent ?? 'missing'}`);
      await sitting.visit(await sitting.login(url.href));
      const { form } = (await sitting.until('a token request', () => sitting.to('token')[0])).logged;
      if (form['resource'] !== resource) fail(`resource in the token request was ${form['resource'] ?? 'missing'}`);
      return `resource=${resource} in both requests`;
    },
  },
  {
    name: 'mcp-pkce',
    ownLogin: true,
    right: 'the client, which no server knows in advance, sends an S256 code challenge',
    source: 'RFC 9700, 2.1.1: "Public clients MUST use PKCE"',
    async happens(sitting) {
      const { searchParams } = await sitting.authorizeUrl();
      if (searchParams.get('code_challenge_method') !== 'S256')
        fail('the authorization URL has no S256 code challenge');
      return 'an S256 code challenge';
    },
  },
  {
    name: 'registers-once',
    right: 'a restarted client uses its registration and its login again',
    source: 'RFC 7591, 3.2.1: client_id: "OAuth 2.0 client identifier string"',
    async happens(sitting) {
      await registeredUrl(sitting);
      await loggedIn(sitting);
      await sitting.restart();
      const since = sitting.mark;
      await sitting.until(
        'a call or a login',
        () => sitting.calls(since).find(({ logged }) => logged.status === 200) ?? sitting.authorizeUrls[1],
      );
      if (sitting.to('register', since).length > 0) fail('after a restart the client registered itself again');
      if (sitting.authorizeUrls.length > 1) fail('after a restart the client asked for a new login');
      return 'after a restart neither a registration nor a login';
    },
  },
  foreign(
    'resource-of-another',
    'metadata of another API is not used',
    'RFC 9728, 3.3: "If these values are not identical, the data contained in the response MUST NOT be used"',
    '{"resource":"https://attacker.example/api"}',
  ),
  foreign(
    'server-of-another',
    'metadata of another authorization server is not used',
    'RFC 8414, 3.3: "If these values are not identical, the data contained in the response MUST NOT be used"',
    '{"issuer":"https://attacker.example"}',
  ),
];
