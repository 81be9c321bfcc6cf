import { html } from 'ghtml';
import type { PageSession } from '../../core/setup-access.ts';
import { appliancePath } from '../appliance/appliance-path.ts';
import type { Frame } from '../frame.ts';
import { type InstallerPage, ownForm } from '../installer-page.ts';
import { qrSvg } from '../qr-svg.ts';
import { sign } from '../signs.ts';
import type { Shown } from './shown-credentials.ts';

/** Where an appliance's credentials are shown. @param form the token of the form that they were asked for with */
export function credentialsPath(form: string, name: string): string {
  return `/credentials/${form}/${encodeURIComponent(name)}`;
}

/**
 * The credentials of an appliance, to be put into it now. The QR code holds what `latchkey appliance add --json` prints.
 * @param done where is told that they have been noted
 */
export function credentialsPage(
  { issued, isNew }: Shown,
  { texts }: Frame,
  session: PageSession,
  done: string,
): InstallerPage {
  const { credentials } = texts.adding;
  const { name, clientId, clientSecret, tokenEndpoint, caFingerprint } = issued;
  const all = {
    name,
    client_id: clientId,
    client_secret: clientSecret.reveal(),
    token_endpoint: tokenEndpoint,
    ca_fingerprint: caFingerprint,
  };
  const row = (
    id: string,
    label: string,
    value: string,
  ) => html`<div class="field"><span class="label" id="${id}-label">${label}</span>
<div class="copied"><code class="value" id="${id}">${value}</code>
<button type="button" data-copy="${id}" data-copied="${texts.installer.copied}" aria-describedby="${id}-label" aria-live="polite" hidden>${texts.installer.copy}</button></div></div>`;
  const doneButton = html`<button class="${isNew ? '' : 'primary'}" id="done">${credentials.done}</button>`;
  const connect = html`<button class="primary" id="connect">${credentials.connectNext(name)}</button>`;
  return {
    title: credentials.title(name),
    narrow: true,
    body: html`<div class="health">!${sign('good')}<h1>${isNew ? credentials.added(name) : credentials.rotated(name)}</h1></div>
<p>${credentials.keep}</p>
<section class="card" aria-label="${credentials.title(name)}">
!${row('client-id', credentials.clientId, clientId)}
!${row('client-secret', credentials.clientSecret, all.client_secret)}
!${row('token-endpoint', credentials.tokenEndpoint, tokenEndpoint)}
!${row('ca-pin', credentials.pin, caFingerprint)}
</section>
<section class="card" aria-labelledby="qr"><h2 id="qr">${credentials.qr}</h2>
!${qrSvg(JSON.stringify(all), credentials.qr) ?? ''}
<p class="hint">${credentials.qrHint}</p></section>
<div class="actions">!${isNew ? ownForm(session, appliancePath(name, 'pair'), connect) : ''}!${ownForm(session, done, doneButton)}</div>`,
  };
}
