import type { FastifyInstance } from 'fastify';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { httpStatus } from './http-status.ts';
import type { FailureAnswer } from './messages.ts';

/** Makes every answer that is not 2xx a {@link FailureAnswer}, whoever refused: a route, Fastify or its router. */
export function answerFailures(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error: unknown, request, reply) => {
    const status = frameworkStatus(error);
    if (error instanceof Failure) return reply.code(httpStatus[error.code]).send(answer(error));
    if (status !== null) return reply.code(status).send(answer(new Failure('request_invalid', messageOf(error))));
    log.error('control_request_failed', { route: request.routeOptions.url, problem: messageOf(error) });
    return reply
      .code(httpStatus.unexpected)
      .send(answer(new Failure('unexpected', 'the hub came upon something it did not expect: see its log')));
  });
  app.setNotFoundHandler({}, (request, reply) => {
    const what = `${request.method} ${request.url.slice(0, 200)}`;
    return reply
      .code(404)
      .send(
        answer(
          new Failure('request_invalid', `the running hub knows no ${what}: are it and this command one version?`),
        ),
      );
  });
}

function answer(failure: Failure): FailureAnswer {
  return { code: failure.code, message: messageOf(failure) };
}

/** The 4xx that Fastify gives an error of its own: bad JSON, an unknown content type, a body too large. */
function frameworkStatus(error: unknown): number | null {
  if (!(error instanceof Error) || !('statusCode' in error)) return null;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : null;
}
