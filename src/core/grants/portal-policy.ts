import type { LoginLimits } from './login-end.ts';
import type { LostAnswerRetry } from './retry-delays.ts';

/** What the configuration says about the logins and refreshes of a portal. Times are in ms. */
export interface PortalPolicy extends LoginLimits {
  readonly retryLostAnswer: LostAnswerRetry;
  /** Whether each refresh ends the access token that was issued before it. */
  readonly refreshEndsAccessToken: boolean;
}

/** The policy of a portal of which the configuration says nothing. */
export const DEFAULT_POLICY: PortalPolicy = {
  retryLostAnswer: 'early',
  loginLifetime: null,
  idleLifetime: null,
  refreshEndsAccessToken: false,
};
