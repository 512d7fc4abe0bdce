#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a host and a subsystem derive of a TLS key, by hashlib and hmac alone: tls_reference.py HASH BYTES HOSTNQN SUBNQN

The key is BYTES times a number that counts up, of the transform HASH (0, 1, 2). Prints the key's text, the identity and
the TLS PSK in hexadecimal. NVMe/TCP Transport 1.1, section 3.6.1; RFC 5869; RFC 8446, section 7.1.
"""
import base64
import hashlib
import hmac
import sys
import zlib


def expand_label(digest, key, label, context, length):
    """HKDF-Extract without salt, then HKDF-Expand-Label."""
    extracted = hmac.new(bytes(digest().digest_size), key, digest).digest()
    label = b'tls13 ' + label
    info = length.to_bytes(2, 'big') + bytes([len(label)]) + label + bytes([len(context)]) + context
    out, block, number = b'', b'', 1
    while len(out) < length:
        block = hmac.new(extracted, block + info + bytes([number]), digest).digest()
        out, number = out + block, number + 1
    return out[:length]


def main():
    transform, count, host, subsystem = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4].encode()
    key = bytes(range(7, 7 + count))
    digest, name = (hashlib.sha256, b'01') if count == 32 else (hashlib.sha384, b'02')
    text = base64.b64encode(key + zlib.crc32(key).to_bytes(4, 'little'))
    retained = expand_label(digest, key, b'HostNQN', host, count) if transform else key
    proof = base64.b64encode(hmac.new(retained, host + b' ' + subsystem + b' NVMe-over-Fabrics', digest).digest())
    print(f'NVMeTLSkey-1:{transform:02}:{text.decode()}:')
    print(f'NVMe1R{name.decode()} {host.decode()} {subsystem.decode()} {proof.decode()}')
    print(expand_label(digest, retained, b'nvme-tls-psk', name + b' ' + proof, count).hex())


main()
