import * as v from 'valibot';
import type { EmulatedPortal } from '../portal.ts';
import { LoginError } from './login.ts';

/** The decision about a device's login, without a browser, in the API's spelling. */
export const DeviceApprovalBody = v.strictObject({
  /** With or without its hyphen. */
  user_code: v.string(),
  /** Name of a user; optional with `deny`. */
  user: v.optional(v.string()),
  /** Whether the user refuses. Default: false. */
  deny: v.optional(v.boolean()),
});

/** The decision about a device's login, without a browser. */
export interface DeviceApproval {
  /** With or without its hyphen, in any case. */
  readonly userCode: string;
  /** Name of a user; optional with `deny`. */
  readonly user?: string | undefined;
  /** Whether the user refuses. Default: false. */
  readonly deny?: boolean | undefined;
}

/**
 * Allows or refuses the access of a device, like the page at its verification_uri.
 * @throws LoginError if the user code is unknown, expired or already decided, or if the user is unknown
 */
export function approveDevice(portal: EmulatedPortal, { userCode, user, deny = false }: DeviceApproval): void {
  const login = portal.deviceLogins.findByUserCode(userCode);
  if (login === undefined || !portal.deviceLogins.isWaiting(login)) {
    const found = login === undefined ? 'an unknown one' : login.decision === null ? 'an expired one' : 'a used one';
    throw new LoginError(`user_code: must be the code of a device that waits for its user (found ${found})`);
  }
  const { users } = portal.settings;
  if (!(user === undefined ? deny : users.has(user))) {
    const found = user === undefined ? 'none' : 'an unknown name';
    throw new LoginError(`user: must be one of ${[...users.keys()].join(', ')} (found ${found})`);
  }
  portal.deviceLogins.decide(login, deny || user === undefined ? { denied: true } : { user });
}
