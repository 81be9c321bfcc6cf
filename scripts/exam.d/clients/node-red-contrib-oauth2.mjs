import { EventEmitter } from 'node:events';
import register from 'node-red-contrib-oauth2/src/oauth2.js';
import { known, run } from './program.mjs';

// What the node uses of Node-RED. A flow sends it a message for each refresh.
let OAuth2Node;
register({
  settings: {},
  httpAdmin: { get: () => undefined },
  nodes: {
    createNode(node) {
      const events = new EventEmitter();
      Object.assign(node, { id: 'exam', on: events.on.bind(events), error: () => undefined, status: () => undefined });
    },
    getCredentials: () => ({}),
    addCredentials: () => undefined,
    registerType(_name, type) {
      OAuth2Node = type;
    },
  },
});

async function refresh({ refresh_token }) {
  const node = new OAuth2Node({
    access_token_url: known.tokenEndpoint,
    grant_type: 'refresh_token',
    client_id: known.id,
    client_secret: known.secret,
    // Without this it sends the secret in the header and in the form, which the emulator refuses.
    client_credentials_in_body: true,
    refresh_token,
  });
  const { promise, resolve } = Promise.withResolvers();
  await node.onInput({}, resolve, () => undefined);
  const [, failure] = [await promise].flat();
  if (failure) throw Object.assign(new Error(failure.oauth2Error.message), failure.oauth2Error);
  return (await promise).oauth2Response;
}

await run({ refresh, isFinal: ({ data }) => data?.error === 'invalid_grant' });
