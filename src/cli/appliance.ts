import { Command } from 'commander';
import { applianceAddCommand } from './appliance-add.ts';
import { applianceApproveCommand } from './appliance-approve.ts';
import { applianceListCommand } from './appliance-list.ts';
import { applianceRemoveCommand } from './appliance-remove.ts';
import { applianceRotateSecretCommand } from './appliance-rotate-secret.ts';

/** `latchkey appliance …` */
export function applianceCommand(): Command {
  return new Command('appliance')
    .description('register, approve, list and remove appliances')
    .addCommand(applianceAddCommand())
    .addCommand(applianceApproveCommand())
    .addCommand(applianceListCommand())
    .addCommand(applianceRemoveCommand())
    .addCommand(applianceRotateSecretCommand());
}
