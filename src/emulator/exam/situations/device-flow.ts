import { fail } from '../judgement.ts';
import type { Sitting } from '../sitting.ts';
import type { GroupSituation } from '../situation.ts';
import type { WireRequest } from '../wire.ts';
import { STAYS_LOGGED_IN } from './checks.ts';

const STOP =
  'RFC 8628, 3.5: "If the client receives an error response with any other error code, it MUST stop polling"';

function polls(sitting: Sitting): WireRequest[] {
  return sitting.to('token').filter(({ logged: { form } }) => form['grant_type']?.endsWith('device_code') === true);
}

/** The device authorization request, once it has its response. */
async function request(sitting: Sitting): Promise<WireRequest> {
  return sitting.until('a device authorization request', () =>
    sitting.to('device_authorization').find(({ answeredAt }) => answeredAt !== null),
  );
}

/** Fails if two polls were much closer than a client must wait. @param seconds as long */
function rejectFastPoll(sitting: Sitting, index: number, seconds: number): void {
  const [before, after] = [polls(sitting)[index - 1], polls(sitting)[index]];
  if (before === undefined || after === undefined) return;
  const gap = (after.receivedAt - (before.answeredAt ?? before.receivedAt)) / 1000;
  // Half of it leaves room for a machine that stands still for a while.
  if (gap < seconds / 2)
    fail(`polls ${index} and ${index + 1} were ${gap.toFixed(1)} s apart, and the interval was ${seconds} s`);
}

/** A poll that gets an error which is the end. A client that polls too fast gets it, too. */
function finalError(name: string, error: string, right: string): GroupSituation {
  return {
    name,
    source: STOP,
    ownLogin: true,
    right,
    settings: { deviceInterval: 1 },
    async happens(sitting) {
      await request(sitting);
      await sitting.until('a poll', () => polls(sitting)[0]);
      const fault = { kind: 'status', status: 400, body: `{"error":"${error}"}`, times: null } as const;
      const { id } = sitting.emulator.addFault({ ...fault, endpoint: 'token' });
      const last = await sitting.until('another poll', () => polls(sitting).find(({ logged }) => logged.fault === id));
      const code = last.logged.form['device_code'];
      const all = () =>
        polls(sitting).filter(({ logged }) => logged.fault === id && logged.form['device_code'] === code);
      await sitting.unlessStopped(() => all().length > 1 || sitting.to('device_authorization').length > 1);
      if (all().length > 1) fail(`the client polled again after ${error}`);
      return `no poll after ${error}`;
    },
  };
}

/** A login by device code. */
export const DEVICE_FLOW: readonly GroupSituation[] = [
  {
    name: 'device-interval',
    ownLogin: true,
    right: 'the client waits for the interval between two polls',
    source:
      'RFC 8628, 3.2: interval: "The minimum amount of time in seconds that the client SHOULD wait between polling requests"',
    settings: { deviceInterval: 4 },
    async happens(sitting) {
      const login = await request(sitting);
      for (const index of [1, 2]) {
        await sitting.until('three polls', () => polls(sitting).length > index);
        rejectFastPoll(sitting, index, 4);
      }
      await sitting.decideDevice(login);
      await sitting.working();
      return 'polls at the interval of the response, and a login';
    },
  },
  {
    name: 'slow-down',
    ownLogin: true,
    right: 'after slow_down the client waits for 5 s more between all further polls',
    source:
      'RFC 8628, 3.5: slow_down: "the interval MUST be increased by 5 seconds for this and all subsequent requests"',
    settings: { deviceInterval: 1 },
    async happens(sitting) {
      const body = '{"error":"slow_down"}';
      sitting.emulator.addFault({ kind: 'status', status: 400, body, endpoint: 'token' });
      const login = await request(sitting);
      for (const index of [1, 2]) {
        await sitting.until('polls after slow_down', () => polls(sitting).length > index);
        rejectFastPoll(sitting, index, 6);
      }
      await sitting.decideDevice(login);
      await sitting.working();
      return 'two polls 6 s and more apart, and a login';
    },
  },
  finalError('device-refused', 'access_denied', 'the client stops polling when the user has refused'),
  finalError('device-code-expired', 'expired_token', 'the client stops polling when the device code has expired'),
  {
    name: 'poll-lost',
    ownLogin: true,
    right: 'a poll that is lost does not end the login',
    source:
      'RFC 8628, 3.5: "On encountering a connection timeout, clients MUST unilaterally reduce their polling frequency before retrying"',
    settings: { deviceInterval: 1 },
    async happens(sitting) {
      await request(sitting);
      await sitting.until('a poll', () => polls(sitting)[0]);
      const { id } = sitting.emulator.addFault({ kind: 'reset_before', endpoint: 'token' });
      const lost = await sitting.until('another poll', () => polls(sitting).find(({ logged }) => logged.fault === id));
      const isNext = ({ logged }: WireRequest) => logged.form['device_code'] === lost.logged.form['device_code'];
      await sitting.until('a further poll', () =>
        polls(sitting)
          .slice(polls(sitting).indexOf(lost) + 1)
          .some(isNext),
      );
      return 'a lost poll, and further ones';
    },
  },
  {
    name: 'device-login-survives-restart',
    right: 'a restarted client needs no new login',
    source: STAYS_LOGGED_IN,
    settings: { deviceInterval: 1 },
    async happens(sitting) {
      await sitting.working();
      await sitting.restart();
      const since = sitting.mark;
      await sitting.working(since);
      if (sitting.to('device_authorization', since).length > 0)
        fail('after a restart the client asked for a new login');
      return 'after a restart the client went on without a new login';
    },
  },
];
