import { X509Certificate } from 'node:crypto';
import type { Clock } from '../core/clock.ts';
import { rfc3339Day } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { ServedCertificate } from './own-certificate.ts';

const FIRST_LINE = /-----BEGIN CERTIFICATE-----/g;

/**
 * Says what appliances will stumble over with the user's own certificate, which the hub shows all the same. Its end is
 * judged by the machine's own clock: the true time may not be known for long.
 */
export function warnOfCertificate(shown: ServedCertificate, clock: Clock, log: Log): void {
  const { anchor, notAfter, pem } = shown;
  if (pem.certificate.match(FIRST_LINE)?.length === 1) {
    log.warn('certificate stands alone in its file', {
      what_to_do: isSelfSigned(anchor.certificate)
        ? 'keep its key when you renew it: that is what appliances pin'
        : 'put the certificate that issued it behind it, the root last: else the pin changes with its key',
    });
  } else if (!isSelfSigned(anchor.certificate)) {
    log.warn('certificate file does not end with a self-signed root', {
      what_to_do: 'put the root last: Node, and Python before 3.13, trust nothing less',
    });
  }
  if (notAfter < clock.now().wall) {
    const ended = rfc3339Day(notAfter);
    log.warn("certificate has ended by this machine's clock", { ended });
  }
}

/** Says which of the hub's names and addresses its certificate is not for, because a CA is not for them. */
export function warnOfLeftOut(leftOut: readonly string[], isRotating: boolean, log: Log): void {
  if (leftOut.length === 0) return;
  log.warn('certificate is not for all names and addresses of the hub', {
    left_out: leftOut.join(', '),
    what_to_do: isRotating
      ? "nothing: it will be for them when the old CA's time is over"
      : 'the CA was made before the hub had them: "latchkey ca --rotate" makes one that is for them',
  });
}

function isSelfSigned(pem: string): boolean {
  const certificate = new X509Certificate(pem);
  return certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey);
}
