// SPDX-License-Identifier: Apache-2.0

package footprint

import "go.opentelemetry.io/collector/pdata/pprofile"

// Profiles returns the heap bytes that pd keeps alive, its dictionary included.
func Profiles(pd pprofile.Profiles) int64 {
	return object(sizeProfilesRequest) + flat(sizeState) + dictionary(pd.Dictionary()) +
		tree(pd.ResourceProfiles(), sizeProfilesResource, pprofile.ResourceProfiles.ScopeProfiles, profiles)
}

func profiles(sp pprofile.ScopeProfiles) int64 {
	return each(sp.Profiles(), sizeProfile, func(p pprofile.Profile) int64 {
		return text(p.OriginalPayloadFormat()) + flat(p.OriginalPayload().Len()) +
			int32s.grown(p.AttributeIndices().Len()) +
			each(p.Samples(), sizeSample, sample)
	})
}

func sample(s pprofile.Sample) int64 {
	return int32s.grown(s.AttributeIndices().Len()) + int64s.grown(s.Values().Len()) +
		flat(8*s.TimestampsUnixNano().Len())
}

func dictionary(d pprofile.ProfilesDictionary) int64 {
	return stringList(d.StringTable()) +
		pointed(d.FunctionTable().Len(), sizeFunction) +
		pointed(d.LinkTable().Len(), sizeLink) +
		each(d.MappingTable(), sizeMapping, func(m pprofile.Mapping) int64 {
			return int32s.grown(m.AttributeIndices().Len())
		}) +
		each(d.LocationTable(), sizeLocation, func(l pprofile.Location) int64 {
			return int32s.grown(l.AttributeIndices().Len()) + pointed(l.Lines().Len(), sizeLine)
		}) +
		each(d.StackTable(), sizeStack, func(s pprofile.Stack) int64 {
			return int32s.grown(s.LocationIndices().Len())
		}) +
		each(d.AttributeTable(), sizeAttributeUnit, func(a pprofile.KeyValueAndUnit) int64 {
			return value(a.Value())
		})
}
