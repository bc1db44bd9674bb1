import { execFileSync } from 'node:child_process';

/** A key and a certificate of its own for 127.0.0.1, as PEM. */
export function selfSignedCertificate(): { readonly key: string; readonly cert: string } {
  const pem = execFileSync(
    'openssl',
    [
      ['req', '-x509', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
      ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'],
      ['-keyout', '-', '-out', '-'],
    ].flat(),
    { stdio: 'pipe', encoding: 'utf8' },
  );
  const [, key, cert] = /^([^]*?)(-----BEGIN CERTIFICATE[^]*)$/.exec(pem)!;
  return { key: key!, cert: cert! };
}
