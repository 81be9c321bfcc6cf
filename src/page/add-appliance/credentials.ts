import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { confirmationPage, secretRotationConfirmation } from '../appliance/confirmations.ts';
import { icon, qrSvg } from '../elements.ts';
import { failurePage, sendFailure, withAppliance } from '../failures.ts';
import { csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath, credentialsPath } from '../paths.ts';
import { type AuthenticatedRequest, type AuthenticatedRoutes, pathParameter } from '../sign-in/authenticated-routes.ts';
import { type CredentialPagesOptions, createIdempotencyKey, readIdempotencyKey } from './add-appliance.ts';
import type { CachedCredentials } from './credentials-cache.ts';

/** Giving an appliance a new secret, and showing the credentials of a new one or of that. */
export function serveCredentials(
  guard: AuthenticatedRoutes,
  { administration, random, cache: shown }: CredentialPagesOptions,
): void {
  function ask(
    asked: AuthenticatedRequest,
    status: number,
    name: string,
    token: string,
    keys: 'none' | 'asked' | 'missing',
  ) {
    const confirmation = secretRotationConfirmation(asked.context.texts, name, token, keys);
    return sendInstallerPage(asked, status, confirmationPage(confirmation, asked.context, asked.session));
  }

  guard.page('/appliances/:name/rotate-secret', (asked) =>
    withAppliance(asked, administration, ({ name, declared }) => {
      if (declared) throw new Failure('appliance_declared', name);
      return ask(asked, 200, name, createIdempotencyKey(random), 'none');
    }),
  );

  guard.form('/appliances/:name/rotate-secret', async (sent) => {
    const name = pathParameter(sent, 'name');
    const { form, session, reply } = sent;
    const token = readIdempotencyKey(form) ?? createIdempotencyKey(random);
    try {
      await shown.getOrIssue(session, token, name, async () => ({
        credentials: await administration.rotateSecret(name, form.get('replace_keys') === 'yes'),
        isNewAppliance: false,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      const hasKeys = error instanceof Failure && error.code === 'appliance_has_keys';
      if (!hasKeys) return sendFailure(sent, name, error);
      return ask(sent, 409, name, token, form.has('asked_keys') ? 'missing' : 'asked');
    }
  });

  guard.page('/credentials/:form/:name', async (asked) => {
    const { context, session } = asked;
    const [form, name] = [pathParameter(asked, 'form'), pathParameter(asked, 'name')];
    const found = await shown.find(session, form, name);
    if (found !== null) {
      const done = `${credentialsPath(form, name)}/done`;
      return sendInstallerPage(asked, 200, credentialsPage(found, context, session, done));
    }
    const { adding, appliance } = context.texts;
    const back = { href: '/', text: appliance.backToOverview };
    return sendInstallerPage(asked, 410, failurePage(adding.credentials.gone, adding.credentials.goneText, back));
  });

  guard.form('/credentials/:form/:name/done', async (sent) => {
    const name = pathParameter(sent, 'name');
    shown.delete(sent.session, pathParameter(sent, 'form'), name);
    return sent.reply.redirect(appliancePath(name), 303);
  });
}

/**
 * The credentials of an appliance, to be put into it now. The QR code holds what `latchkey appliance add --json` prints.
 * @param done where is told that they have been noted
 */
export function credentialsPage(
  { credentials: issued, isNewAppliance: isNew }: CachedCredentials,
  { texts }: PageContext,
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
    body: html`<div class="health">!${icon('good')}<h1>${isNew ? credentials.added(name) : credentials.rotated(name)}</h1></div>
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
<div class="actions">!${isNew ? csrfForm(session, appliancePath(name, 'pair'), connect) : ''}!${csrfForm(session, done, doneButton)}</div>`,
  };
}
