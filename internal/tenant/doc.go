// SPDX-License-Identifier: Apache-2.0

// Package tenant answers who is who: which tenants there are, what each may take, how fast, and whether
// it is shut out for a while.
//
// A [Registry] keeps a bounded number of tenants by name. Whoever uses one pins it for as long as that
// lasts; idle ones are forgotten, unless forgetting would give them something back: tokens that they have
// spent, or a breaker that they have tripped not long ago. Once the registry is full, names that it does not know share
// one tenant, [OverflowName], and looking them up allocates nothing. The price is that an honest newcomer
// then shares it too, unless its name has an override or comes from a trusted source for which places are
// kept.
//
// A name is what a client says or what an authenticator vouches for, and these are two different tenants
// even where the names are the same: a header must not spend what belongs to whoever has authenticated.
// [Identity] makes names of what clients send in such a way that no client can become another tenant, nor
// one of the two that the registry owns.
//
// Rates are counted exactly, in integers; see [rate]. The breaker's states are gobreaker's; what feeds it
// and what becomes of its probe is decided here.
//
// The package returns data. It knows no telemetry and no protocol, logs nothing and starts no goroutine:
// its caller calls [Registry.Sweep] and [OverridesFile.Reload] now and then.
package tenant
