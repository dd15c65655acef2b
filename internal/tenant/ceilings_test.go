// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otel-governor/otel-governor/internal/tenant"
)

func TestRateReadsNumbersAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]tenant.PerSecond{
		"unlimited": 0,
		"0.001":     tenant.MinRate,
		"1":         1,
		"2.5":       2.5,
		"250000000": 2.5e8,
		"1e+12":     tenant.MaxRate,
	} {
		p := tenant.PerSecond(7)
		require.NoError(t, p.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, p, text)
		again := tenant.PerSecond(7)
		require.NoError(t, again.UnmarshalText([]byte(p.String())), p)
		assert.Equal(t, p, again)
	}
	for _, text := range []string{"", "0", "-1", "0.0009", "1e13", "inf", "NaN", "0x10", "1_000", "10MiB", "Unlimited", "1e999", "1 "} {
		p := tenant.PerSecond(7)
		assert.EqualError(t, p.UnmarshalText([]byte(text)), "a number from 0.001 to 1e12, or unlimited", text)
		assert.Equal(t, tenant.PerSecond(7), p, text)
	}
}

// TestOverrideInherits sets each field alone and expects every other one to stay, whatever fields there
// will be.
func TestOverrideInherits(t *testing.T) {
	defaults := filled[tenant.Ceilings](1)
	assert.Equal(t, defaults, tenant.Override{}.Over(defaults))
	var n int
	each(reflect.TypeFor[tenant.Override](), nil, func(index []int) {
		var o tenant.Override
		field := reflect.ValueOf(&o).Elem().FieldByIndex(index)
		field.Set(reflect.New(field.Type().Elem())) // a zero that was written is no zero that is absent
		got := o.Over(defaults)
		assert.Equal(t, n, differing(t, defaults, got), "field %v", index)
		n++
	})
	assert.Equal(t, 14, n)
	rate, burst := tenant.PerSecond(9), time.Minute
	got := tenant.Override{Rate: tenant.RateOverride{Items: &rate, Burst: &burst}}.Over(defaults)
	want := defaults
	want.Rate.Items, want.Rate.Burst = 9, time.Minute
	assert.Equal(t, want, got)
}

// differing returns the number of the one field in which a and b differ.
func differing(t *testing.T, a, b tenant.Ceilings) int {
	var found []int
	n := 0
	each(reflect.TypeFor[tenant.Ceilings](), nil, func(index []int) {
		if !reflect.DeepEqual(reflect.ValueOf(a).FieldByIndex(index).Interface(), reflect.ValueOf(b).FieldByIndex(index).Interface()) {
			found = append(found, n)
		}
		n++
	})
	require.Len(t, found, 1)
	return found[0]
}

// each calls f for every field of t that is not a struct.
func each(t reflect.Type, prefix []int, f func(index []int)) {
	for i := range t.NumField() {
		index := append(prefix[:len(prefix):len(prefix)], i)
		if ft := t.Field(i).Type; ft.Kind() == reflect.Struct {
			each(ft, index, f)
		} else {
			f(index)
		}
	}
}

// filled returns a T all of whose numbers are n.
func filled[T any](n int64) T {
	var v T
	each(reflect.TypeFor[T](), nil, func(index []int) {
		field := reflect.ValueOf(&v).Elem().FieldByIndex(index)
		field.Set(reflect.ValueOf(n).Convert(field.Type()))
	})
	return v
}
