import type { Appliance } from '../../core/appliances/appliance.ts';
import { Failure } from '../../core/failure.ts';

/** The failure for a name that is taken. @param holder the appliance with that name, if known */
export function applianceExistsFailure(name: string, holder?: Appliance): Failure {
  if (holder?.origin === 'declared') {
    return new Failure(
      'appliance_exists',
      `${name} already exists: it is declared in the hub's configuration, in the table [appliances.${name}]; pair it with "latchkey pair ${name}", or choose another name`,
    );
  }
  return new Failure(
    'appliance_exists',
    `there is an appliance ${name} already: choose another name, or remove it first`,
  );
}

/** Whether its row in the store was damaged or changed, so that no client can authenticate as this appliance. */
export function hasUnreadableCredentials({ credentials }: Appliance): boolean {
  return credentials.kind === 'none' && credentials.damaged === true;
}

/**
 * If another program changed the row, it may have given it another appliance's name: a new secret could then open
 * another appliance's grant.
 */
export function assertNotDamaged(appliance: Appliance): void {
  if (!hasUnreadableCredentials(appliance)) return;
  const { name } = appliance;
  throw new Failure(
    'not_allowed',
    `the entry of ${name} in the store was damaged, or changed by something other than the hub, so it can't get a new secret: remove it ("latchkey appliance remove ${name}"), add it again and pair it`,
  );
}

/** @throws Failure `appliance_declared` if only the configuration can remove or change the appliance */
export function assertNotDeclared({ origin, name }: Appliance, instead = 'remove it there'): void {
  if (origin !== 'declared') return;
  throw new Failure(
    'appliance_declared',
    `${name} is declared in the hub's configuration, in the table [appliances.${name}]: ${instead}, and restart the hub`,
  );
}
