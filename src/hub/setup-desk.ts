import type { SetupAccessBook } from '../broker/setup-access.ts';
import { Secret } from '../core/secret.ts';
import type { SetupCode, SetupCodes } from '../core/setup-access.ts';

/**
 * Tells people at the hub how to get to the installer's page.
 * @param endpoint the address of a path on the home network
 */
export function setupDesk(
  access: Pick<SetupAccessBook, 'code' | 'issueToken' | 'rotate'>,
  endpoint: (path: string) => string,
): SetupCodes {
  function told(): SetupCode {
    const { token, lifetime } = access.issueToken();
    return {
      code: access.code,
      page: endpoint('/'),
      signIn: new Secret(endpoint(`/sign-in/${token.reveal()}`)),
      signInExpiresIn: Math.floor(lifetime / 1000),
    };
  }

  return {
    setupCode: async () => told(),
    async rotateSetupCode() {
      await access.rotate();
      return told();
    },
  };
}
