// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// papers are an authority's certificate and those that it signed, each in files.
type papers struct {
	dir    string
	pool   *x509.CertPool
	client tls.Certificate
}

// startAuthority makes an authority, and certificates for a server at 127.0.0.1 and for a client.
func startAuthority(t *testing.T) papers {
	t.Helper()
	p := papers{dir: t.TempDir(), pool: x509.NewCertPool()}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := p.sign(t, "ca", ca, ca, nil)
	p.sign(t, "server", &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, ca, caKey)
	p.sign(t, "client", &x509.Certificate{
		SerialNumber: big.NewInt(3), NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, caKey)
	text, err := os.ReadFile(filepath.Join(p.dir, "ca.crt"))
	if err == nil {
		p.pool.AppendCertsFromPEM(text)
		p.client, err = tls.LoadX509KeyPair(filepath.Join(p.dir, "client.crt"), filepath.Join(p.dir, "client.key"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sign writes a certificate and its key, signed by an authority or by itself.
func (p papers) sign(t *testing.T, name string, of, by *x509.Certificate, byKey *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if byKey == nil {
		byKey = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: cert}, name + ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(p.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return key
}

// TestTLSStaysTLSBehindTheDoor has receivers encrypt, and know their clients by certificate.
func TestTLSStaysTLSBehindTheDoor(t *testing.T) {
	t.Parallel()
	p := startAuthority(t)
	for name, mutual := range map[string]bool{"TLS": false, "mutual TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSink(t)
			own := fmt.Sprintf("{cert_file: '%[1]s/server.crt', key_file: '%[1]s/server.key'", p.dir)
			if mutual {
				own += fmt.Sprintf(", client_ca_file: '%s/ca.crt'", p.dir)
			}
			c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: []string{
				atTheDoor, "extensions::governor::admission: {max_batch_items: 10}",
				"receivers::otlp::protocols::grpc::tls: " + own + "}", "receivers::otlp::protocols::http::tls: " + own + "}",
			}})
			known := &tls.Config{RootCAs: p.pool, Certificates: []tls.Certificate{p.client}}
			for _, sendBy := range []protocol{{"grpc", overTLS(known)}, {"http", overHTTPS(known)}} {
				send := func(b batch) answer {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					return sendBy.send(c, ctx, traces, traces.make(b))
				}
				wantAccepted(t, send(one(sendBy.name, 0)))
				wantNever(t, send(items(11, "many")), "batch_items")
			}
			if n := c.refusalsIn("wire", "batch_items"); n != 2 {
				t.Errorf("%d refused undecoded, want 2", n)
			}
			if mutual {
				stranger := &tls.Config{RootCAs: p.pool}
				for _, send := range []protocol{{"grpc", overTLS(stranger)}, {"http", overHTTPS(stranger)}} {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					if a := send.send(c, ctx, traces, traces.make(one("stranger", 0))); a.status.Code() != codes.Unavailable || a.reason() != "" {
						t.Errorf("a client without a certificate is told %v", a)
					}
					cancel()
				}
			}
			s.wantOnce([]string{"grpc", "http"})
			c.wantNothingLeft()
		})
	}
}

func overTLS(by *tls.Config) func(*collector, context.Context, signal, request) answer {
	return func(c *collector, ctx context.Context, s signal, r request) answer {
		conn, err := grpc.NewClient(c.grpc, grpc.WithTransportCredentials(credentials.NewTLS(by)))
		if err != nil {
			return answer{status: status.New(codes.Unknown, err.Error())}
		}
		defer conn.Close()
		return answer{status: status.Convert(s.send(ctx, conn, r))}
	}
}

// overHTTPS sends protobuf. No connection is Unavailable, as in gRPC.
func overHTTPS(by *tls.Config) func(*collector, context.Context, signal, request) answer {
	return func(c *collector, ctx context.Context, s signal, r request) answer {
		failed := func(err error) answer { return answer{status: status.New(codes.Unavailable, err.Error())} }
		body, err := r.MarshalProto()
		if err != nil {
			return failed(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.http+s.path, bytes.NewReader(body))
		if err != nil {
			return failed(err)
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		transport := &http.Transport{TLSClientConfig: by}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return failed(err)
		}
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == http.StatusOK {
			return answer{status: status.Convert(err), http: resp.StatusCode}
		}
		var st rpcstatus.Status
		if err := proto.Unmarshal(said, &st); err != nil {
			return failed(err)
		}
		return answer{status: status.FromProto(&st), http: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After")}
	}
}
