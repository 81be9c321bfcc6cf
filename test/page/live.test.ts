import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

/** The maximum number of pages that get live updates. */
const MAX_FOLLOWERS = 32;

let emulator: Emulator;
let hub: HubProcess;
let agent: Agent;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  agent = new Agent({ connect: { ca: (await hub.authority()).certificate } });
  parts.defer(() => agent.destroy());
});

/** An open page with its event stream. */
interface Follower extends AsyncDisposable {
  /** Resolves when the stream has sent the text; rejects if the stream ends before. */
  waitForText(text: string): Promise<void>;
  /** How the stream ended. */
  readonly ended: Promise<'ended' | 'cut off'>;
  isOpen(): boolean;
}

async function follow({ origin, cookie }: PageVisitor): Promise<Follower> {
  const { statusCode, headers, body } = await request(`${origin}/live`, {
    dispatcher: agent,
    headers: { cookie: cookie ?? '' },
  });
  expect({ statusCode, type: headers['content-type'] }).toEqual({
    statusCode: 200,
    type: 'text/event-stream; charset=utf-8',
  });
  let text = '';
  let isOpen = true;
  let dataReceived = Promise.withResolvers<void>();
  body.setEncoding('utf8').on('data', (piece) => {
    text += piece;
    dataReceived.resolve();
    dataReceived = Promise.withResolvers();
  });
  const ended = new Promise<'ended' | 'cut off'>((resolve) => {
    body.once('end', () => resolve('ended'));
    body.once('error', () => resolve('cut off'));
  }).finally(() => {
    isOpen = false;
    dataReceived.resolve();
  });
  return {
    ended,
    isOpen: () => isOpen,
    async waitForText(wanted) {
      while (!text.includes(wanted)) {
        if (!isOpen) throw new Error(`the stream ended without ${wanted}: ${text}`);
        await dataReceived.promise;
      }
    },
    async [Symbol.asyncDispose]() {
      body.destroy();
      await ended;
    },
  };
}

describe('the live updates of an open page', () => {
  it('an open page is notified of a change, and gets heartbeats while nothing changes', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    await using quiet = await follow(visitor);
    await quiet.waitForText('event: heartbeat\ndata:\n\n');
    await hub.addAppliance('wallbox');
    await quiet.waitForText('event: changed\ndata:\n\n');
  });

  it('an open page is notified when registration opens, and of a new login to share and its refresh', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    const changes: (() => Promise<unknown>)[] = [
      () => hub.ask((control) => control.request('openRegistration', { open_for: 600 })),
      () => hub.addConnection('netatmo'),
      () => hub.pair('netatmo', emulator),
      // Nothing but the login itself changes: no appliance uses it.
      () => sleep(1100).then(() => hub.ask((control) => control.request('refresh', { name: 'netatmo' }))),
    ];
    for (const change of changes) {
      await using follower = await follow(visitor);
      await follower.waitForText('retry');
      await change();
      await follower.waitForText('event: changed');
    }
  });

  it('an open page gets no more updates when its session has ended', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    await using other = await PageVisitor.signedIn(hub);
    await using follower = await follow(visitor);
    await using stays = await follow(other);
    await visitor.post('/sign-out', { csrf: await visitor.csrf() });
    expect(await follower.ended).toBe('ended');
    expect(stays.isOpen()).toBe(true);
    expect((await visitor.get('/live')).status).toBe(401);
  });

  it('the oldest open page loses its updates when too many pages are open', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    await using all = new AsyncDisposableStack();
    const followers: Follower[] = [];
    for (let count = 0; count < MAX_FOLLOWERS + 1; count++) followers.push(all.use(await follow(visitor)));
    expect(await followers[0]?.ended).toBe('ended');
    await hub.addAppliance('one-more');
    await followers.at(-1)?.waitForText('event: changed');
    expect(followers.filter((one) => one.isOpen())).toHaveLength(MAX_FOLLOWERS);
  });

  it('an open page does not delay the stop of the hub', async () => {
    await using visitor = await PageVisitor.signedIn(hub);
    await using follower = await follow(visitor);
    await follower.waitForText('retry');
    await hub.kill('SIGTERM');
    expect(await follower.ended).toBe('ended');
    await hub.launch();
  });
});
