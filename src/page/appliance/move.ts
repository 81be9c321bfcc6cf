import { html } from 'ghtml';
import type { Administration } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import type { PageSession } from '../../core/setup-access.ts';
import type { AdministrationView } from '../administration-view.ts';
import { sendFailure, sendNothingChanged, withAppliance } from '../failures.ts';
import { renderSelectField } from '../form-field.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import { type AuthenticatedRequest, type AuthenticatedRoutes, pathParameter } from '../sign-in/authenticated-routes.ts';
import { connectionOption, connectionsFor } from './connection-choice.ts';

/** Serves the form that lets an appliance use another connection. */
export function serveMove(guard: AuthenticatedRoutes, administration: AdministrationView): void {
  guard.page('/appliances/:name/move', (req) =>
    withAppliance(req, administration, (appliance, status) => {
      if (appliance.declared) throw new Failure('appliance_declared', appliance.name);
      const current = status.connections.find(({ name }) => name === appliance.connection);
      const offered = connectionsFor(appliance, status);
      return sendInstallerPage(req, 200, movePage(req.context, req.session, appliance, current, offered));
    }),
  );

  guard.form('/appliances/:name/move', async (submission) => {
    const name = pathParameter(submission, 'name');
    try {
      await submission.administration.moveAppliance(name, [submission.form.get('connection') ?? '']);
      return submission.reply.redirect(appliancePath(name), 303);
    } catch (error) {
      return sendMoveFailure(submission, administration, name, submission.form.get('connection') ?? '', error);
    }
  });
}

/**
 * Sends a page that says why an appliance can't use a connection.
 * @throws `error` itself if it is not a {@link Failure}
 */
export async function sendMoveFailure(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
  name: string,
  connection: string,
  error: unknown,
) {
  if (!(error instanceof Failure && error.code === 'connection_mismatch')) return sendFailure(req, name, error);
  const { connectionChoice } = req.context.texts;
  const { appliances, connections } = await administration.status();
  const wanted = appliances.find((one) => one.name === name);
  const offered = connections.find((one) => one.name === connection);
  const { noPermissions } = connectionChoice;
  const text = connectionChoice.mismatch(
    wanted?.title ?? name,
    wanted?.scope ?? noPermissions,
    offered?.title ?? connection,
    offered?.scope ?? noPermissions,
  );
  return sendNothingChanged(req, text, name);
}

/**
 * The form that lets an appliance use another connection.
 * @param current the one that it uses
 * @param offered the others that it could use
 */
function movePage(
  { texts }: PageContext,
  session: PageSession,
  { name, title, connection }: ApplianceStatus,
  current: ConnectionStatus | undefined,
  offered: readonly ConnectionStatus[],
): InstallerPage {
  const { connectionChoice: own, installer } = texts;
  const heading = own.moveHeading(title);
  const options = offered.map((one) => connectionOption(one, texts));
  const isConnected = current?.state !== 'unpaired' && current?.state !== 'pairing';
  const former = current?.own ? html`<p>${isConnected ? own.ownKept : own.ownRemoved}</p>` : '';
  const content = html`!${renderSelectField({ id: 'connection', label: own.label, hint: null }, 'connection', options, '')}
<div class="actions"><button class="primary" id="yes">${own.moveButton}</button><a class="button" href="${appliancePath(name)}">${installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`!${backLink(appliancePath(name), title)}
<h1>${heading}</h1>
<p>${own.moveText(current?.title ?? connection)}</p>
!${offered.length === 0 ? html`<p>${own.noneFits}</p>` : html`!${former}!${csrfForm(session, appliancePath(name, 'move'), content, 'fields')}`}`,
  };
}
