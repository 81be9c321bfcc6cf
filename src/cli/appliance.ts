import { Command } from 'commander';
import { applianceAddCommand } from './appliance-add.ts';
import { applianceListCommand } from './appliance-list.ts';
import { applianceRemoveCommand } from './appliance-remove.ts';
import { applianceRotateSecretCommand } from './appliance-rotate-secret.ts';

/** `latchkey appliance …` */
export function applianceCommand(): Command {
  return new Command('appliance')
    .description('register, list and remove appliances')
    .addCommand(applianceAddCommand())
    .addCommand(applianceListCommand())
    .addCommand(applianceRemoveCommand())
    .addCommand(applianceRotateSecretCommand());
}
