package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// OtherCA writes the certificate of an authority that has signed nothing, and returns its file.
func OtherCA(t testing.TB) string {
	t.Helper()
	return newAuthority(t).write(t, t.TempDir())
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newKey(t), certificate: template("authority")}
	a.certificate.IsCA, a.certificate.BasicConstraintsValid, a.certificate.KeyUsage = true, true, x509.KeyUsageCertSign
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

func (a *authority) write(t testing.TB, dir string) string {
	t.Helper()
	return a.sign(t, filepath.Join(dir, "ca.crt"), a.certificate, a.key)
}

// issue writes a certificate and its key.
func (a *authority) issue(t testing.TB, dir, name string, ip net.IP) (certificate, key string) {
	t.Helper()
	private, of := newKey(t), template(name)
	if ip != nil {
		of.IPAddresses = []net.IP{ip}
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, filepath.Join(dir, name+".crt"), of, private), encode(t, filepath.Join(dir, name+".key"), "EC PRIVATE KEY", der)
}

func (a *authority) sign(t testing.TB, path string, of *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, of, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, path, "CERTIFICATE", der)
}

func encode(t testing.TB, path, kind string, der []byte) string {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
