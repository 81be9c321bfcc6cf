import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PageSession } from '../../core/setup-access.ts';
import type { PageContext } from '../page-context.ts';

/** How a listener recognises the people who use the installer's page, and the forms of its own pages. */
export interface PageAuthentication {
  /** The session of a request; null if there is none. */
  findSession(request: FastifyRequest): PageSession | null;
  /** Responds to a page request or form without a session. */
  sendUnauthenticated(request: FastifyRequest, reply: FastifyReply, context: PageContext): FastifyReply;
  /** Whether a form did not come from another site's page. */
  isSameOrigin(request: FastifyRequest): boolean;
  /** The page of the hub from which a request was sent; `/` if that is unknown. */
  submittingPage(request: FastifyRequest): string;
  /** The name of the user, for the log and the history; null if it is unknown. */
  userName(request: FastifyRequest): string | null;
}
