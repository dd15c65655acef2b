// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// issuer is an OpenID provider of the bare minimum: it says where its keys are, and what they are.
type issuer struct {
	t   *testing.T
	url string
}

const audience = "governed"

// issuerKey signs for every issuer of this process. Making one takes a while.
var issuerKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := issuerKey()
	if err != nil {
		t.Fatal(err)
	}
	serve := func(v func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(v()); err != nil {
				t.Error(err)
			}
		}
	}
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	i := &issuer{t: t, url: "http://" + server.Listener.Addr().String()}
	mux.Handle("/.well-known/openid-configuration", serve(func() any {
		return map[string]any{
			"issuer": i.url, "jwks_uri": i.url + "/keys", "authorization_endpoint": i.url + "/authorize",
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
	}))
	mux.Handle("/keys", serve(func() any {
		return map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encoded(key.N.Bytes()), "e": encoded(big.NewInt(int64(key.E)).Bytes()),
		}}}
	}))
	server.Start()
	t.Cleanup(server.Close)
	return i
}

// yaml has receivers that let nobody in without a token, and a governor that believes what it says.
func (i *issuer) yaml() string {
	return fmt.Sprintf(`
extensions::oidc: {providers: [{issuer_url: '%s', audience: %s}]}
extensions::governor::tenants::auth_attributes: [subject]
service::extensions: [oidc, governor]
receivers::otlp::protocols: {grpc: {auth: {authenticator: oidc}}, http: {auth: {authenticator: oidc}}}`, i.url, audience)
}

// token is one that says who its bearer is.
func (i *issuer) token(subject string) string {
	now := time.Now()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			i.t.Error(err)
		}
		return encoded(b)
	}
	signed := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": "1"}) + "." + part(map[string]any{
		"iss": i.url, "aud": audience, "sub": subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	key, err := issuerKey()
	if err != nil {
		i.t.Error(err)
		return ""
	}
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	return signed + "." + encoded(signature)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// TestHeaderDoesNotSpeakForTheAuthenticated has a client name another tenant than the one it is.
func TestHeaderDoesNotSpeakForTheAuthenticated(t *testing.T) {
	t.Parallel()
	s := startSink(t)
	vouched, header := byAuthentication(t), byHeader(t)
	c := start(t, setup{config: "governed.yaml", sink: s, profiles: true, yaml: append(append(vouched.yaml, header.yaml...),
		"extensions::governor::tenants::overrides: {acme: {max_batch_items: 1}}")})

	claiming := func(claimed string) naming {
		return naming{sign: func(ctx context.Context, is string) context.Context {
			return header.sign(vouched.sign(ctx, is), claimed)
		}}
	}
	acme := tenant{c, "acme", claiming("globex")}
	for _, p := range protocols {
		wantNever(t, acme.send(p, traces, items(2, "of acme")), "batch_items")
	}
	globex := tenant{c, "globex", claiming("acme")}
	wantAccepted(t, globex.send(grpcProtocol, traces, items(2, "of globex")))
	if a := (tenant{c, "acme", header}).send(grpcProtocol, traces, items(1, "of nobody")); a.status.Code() != codes.Unauthenticated {
		t.Errorf("want Unauthenticated: %v", a)
	}
	s.wantOnce(items(2, "of globex").ids)
}
