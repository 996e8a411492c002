"""Certificates for tests, made by the program openssl when they run."""

import pathlib
import subprocess


def openssl(*arguments):
    subprocess.run(['openssl', *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']


class Pair:
    """A certificate and its key, as files."""

    def __init__(self, folder, name):
        self.certificate, self.key = pathlib.Path(folder) / f'{name}.pem', pathlib.Path(folder) / f'{name}.key'

    def pem(self):
        return self.certificate.read_bytes()

    def key_pem(self):
        return self.key.read_bytes()


class Authority(Pair):
    """Who signs certificates."""

    def __init__(self, folder, name='authority'):
        super().__init__(folder, name)
        self.folder = pathlib.Path(folder)
        openssl('req', '-x509', *KEY, '-keyout', self.key, '-out', self.certificate, '-subj', f'/CN={name}',
                '-days', 30)

    def issue(self, name, days=20):
        """Of `localhost` and 127.0.0.1; expired where `days` are less than 0."""
        pair = Pair(self.folder, name)
        request, extensions = self.folder / f'{name}.csr', self.folder / f'{name}.ext'
        extensions.write_text(f'subjectAltName=DNS:localhost,DNS:{name},IP:127.0.0.1\n')
        openssl('req', *KEY, '-keyout', pair.key, '-out', request, '-subj', f'/CN={name}')
        openssl('x509', '-req', '-in', request, '-CA', self.certificate, '-CAkey', self.key, '-CAcreateserial',
                '-days', days, '-extfile', extensions, '-out', pair.certificate)
        return pair


class MountedSecret:
    """A folder as Kubernetes mounts a secret: tls.crt and tls.key are links through ..data, which changes at once."""

    def __init__(self, folder, pair):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.versions = 0
        self.put(pair)
        self.certificate, self.key = self.folder / 'tls.crt', self.folder / 'tls.key'
        for file in (self.certificate, self.key):
            file.symlink_to(pathlib.Path('..data') / file.name)

    def put(self, pair):
        self.versions += 1
        version = self.folder / f'..version_{self.versions}'
        version.mkdir()
        (version / 'tls.crt').write_bytes(pair.pem())
        (version / 'tls.key').write_bytes(pair.key_pem())
        fresh = self.folder / '..data_tmp'
        fresh.symlink_to(version.name)
        fresh.rename(self.folder / '..data')
