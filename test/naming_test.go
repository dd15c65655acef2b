// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/metadata"
)

// naming is a way in which a batch says whose it is.
type naming struct {
	yaml []string // what the collector must be told to understand it
	sign func(ctx context.Context, tenant string) context.Context
	mark func(r request, tenant string)
}

const (
	headerName    = "x-scope-orgid"
	attributeName = "team"
)

const byHeaderYAML = `
extensions::governor::tenants::metadata_keys: [` + headerName + `]
receivers::otlp::protocols: {grpc: {include_metadata: true}, http: {include_metadata: true}}`

// byHeader names a tenant in a header of the request.
func byHeader(*testing.T) naming {
	return naming{
		yaml: []string{byHeaderYAML},
		sign: func(ctx context.Context, tenant string) context.Context {
			return metadata.AppendToOutgoingContext(ctx, headerName, tenant)
		},
	}
}

// byAuthentication has an issuer vouch for a tenant.
func byAuthentication(t *testing.T) naming {
	issuer := startIssuer(t)
	return naming{
		yaml: []string{issuer.yaml()},
		sign: func(ctx context.Context, tenant string) context.Context {
			return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+issuer.token(tenant))
		},
	}
}

// byResource names a tenant in an attribute of the telemetry's resources.
func byResource(*testing.T) naming {
	return naming{yaml: []string{"processors::limiter::tenant_attribute: " + attributeName}, mark: mark}
}

// mark makes all resources of r a tenant's.
func mark(r request, tenant string) {
	switch r := r.(type) {
	case ptraceotlp.ExportRequest:
		for _, rs := range r.Traces().ResourceSpans().All() {
			rs.Resource().Attributes().PutStr(attributeName, tenant)
		}
	case plogotlp.ExportRequest:
		for _, rl := range r.Logs().ResourceLogs().All() {
			rl.Resource().Attributes().PutStr(attributeName, tenant)
		}
	default:
		panic("no story has needed it yet")
	}
}

// part is what one tenant has in a batch of several.
type part struct {
	tenant string
	batch  batch
}

// shared is a batch of traces with a resource for each part.
func shared(parts ...part) request {
	all := ptrace.NewTraces()
	for _, p := range parts {
		r := traces.make(p.batch).(ptraceotlp.ExportRequest)
		mark(r, p.tenant)
		r.Traces().ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	return ptraceotlp.NewExportRequestFromTraces(all)
}

// tenant is a client that says whose its batches are.
type tenant struct {
	*collector
	name string
	by   naming
}

// context is one in which requests are signed.
func (t tenant) context() context.Context {
	if t.by.sign == nil {
		return context.Background()
	}
	return t.by.sign(context.Background(), t.name)
}

func (t tenant) request(s signal, b batch) request {
	r := s.make(b)
	if t.by.mark != nil {
		t.by.mark(r, t.name)
	}
	return r
}

// send sends a batch and returns the answer.
func (t tenant) send(p protocol, s signal, b batch) answer {
	ctx, cancel := context.WithTimeout(t.context(), patience)
	defer cancel()
	return p.send(t.collector, ctx, s, t.request(s, b))
}

// sending sends a batch, without a deadline, and returns at once; the answer comes through the channel.
func (t tenant) sending(p protocol, s signal, b batch) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- p.send(t.collector, t.context(), s, t.request(s, b)) }()
	return answers
}
