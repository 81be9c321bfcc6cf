import { html } from 'ghtml';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import type { Confirmation } from '../appliance/confirmations.ts';
import { joinTitles } from '../connection-names.ts';
import { connectionPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

/** Asks whether to disconnect a connection, which removes its grant. */
export function disconnectConfirmation(texts: Texts, { name, title, users }: ConnectionStatus): Confirmation {
  const { connection, appliance } = texts;
  return {
    heading: connection.disconnectHeading(title),
    text: users.length === 0 ? connection.disconnectUnused : connection.disconnectText(joinTitles(users, texts)),
    action: connectionPath(name, 'unpair'),
    confirmLabel: appliance.disconnect,
    cancelHref: connectionPath(name),
  };
}

/**
 * Asks whether to remove a connection. Only the form that names its appliances permits to remove a connection in use.
 */
export function connectionRemovalConfirmation(texts: Texts, { name, title, users }: ConnectionStatus): Confirmation {
  const { connection, appliance } = texts;
  const isUsed = users.length > 0;
  return {
    heading: connection.removeHeading(title),
    text: isUsed ? connection.removeUsed(joinTitles(users, texts)) : connection.removeUnused,
    action: connectionPath(name, 'remove'),
    confirmLabel: appliance.remove,
    cancelHref: connectionPath(name),
    fieldsHtml: isUsed ? html`<input type="hidden" name="even_if_used" value="yes">` : '',
  };
}
