// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// MinRetryAfter is the shortest delay that a refusal asks for. The OTLP/HTTP receiver cuts RetryInfo down
// to whole seconds for Retry-After, and clients take 0 for "at once".
const MinRetryAfter = time.Second

// errorDomain is the domain of the ErrorInfo that refusals carry: the scope in which their reasons are
// unique.
const errorDomain = "otel-governor"

// Error is a refusal. It is comparable with [errors.Is] to its class ([ErrLimitExceeded],
// [ErrOverloaded], [ErrQuota]) and to its Cause; consumererror.IsPermanent holds for those that the same
// batch will meet again. It is a value: nobody changes one that was returned.
type Error struct {
	Reason     Reason
	Tenant     string        // whose batch it was; never shown to anybody else
	Observed   int64         // what was found
	Limit      int64         // what is allowed
	Unit       string        // of both, in UCUM; empty: the unit of the reason
	RetryAfter time.Duration // after which the client may come back; only for reasons that are Delayed
	Cause      error         // what led to it: why a context ended
}

// Error says which limit was met, what was observed, what is allowed and what to do about it.
func (e *Error) Error() string {
	v := verdicts[e.Reason]
	s := string(e.Reason) + ": " + strings.NewReplacer(
		"{observed}", strconv.FormatInt(e.Observed, 10),
		"{limit}", strconv.FormatInt(e.Limit, 10),
		"{unit}", nouns[e.unit()],
	).Replace(v.message)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// unit is that of Observed and Limit, in UCUM.
func (e *Error) unit() string { return cmp.Or(e.Unit, verdicts[e.Reason].unit) }

// Unwrap returns the class of the refusal, and its cause if it has one.
func (e *Error) Unwrap() []error {
	var errs []error
	if c := verdicts[e.Reason].class; c != nil {
		errs = append(errs, c)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// GRPCStatus is what a client is answered: the code of the reason, an ErrorInfo with reason, observed,
// limit and unit, and a RetryInfo exactly for the reasons that are worth another try. It is built when
// asked for, since most refusals of a flood are never looked at.
func (e *Error) GRPCStatus() *status.Status {
	v := verdicts[e.Reason]
	info := &errdetails.ErrorInfo{Reason: string(e.Reason), Domain: errorDomain}
	if unit := e.unit(); unit != "" {
		info.Metadata = map[string]string{
			"observed": strconv.FormatInt(e.Observed, 10),
			"limit":    strconv.FormatInt(e.Limit, 10),
			"unit":     unit,
		}
	}
	details := []protoadapt.MessageV1{info}
	if v.delayed {
		details = append(details, &errdetails.RetryInfo{
			RetryDelay: durationpb.New(max(e.RetryAfter, MinRetryAfter)),
		})
	}
	s := status.New(v.code, e.Error())
	if with, err := s.WithDetails(details...); err == nil {
		return with
	}
	return s // unreachable: the details are well-known messages and no code of the table is OK
}
