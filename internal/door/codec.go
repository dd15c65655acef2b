// SPDX-License-Identifier: Apache-2.0

package door

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec is the codec of protobuf, but that it does not decode what pdata would: it keeps the bytes, for the
// interceptor to decode once the request is admitted. That are the requests of the four export services; a
// server is sent nothing else of pdata's. Those of other services are unpacked here, where [asPacked] did not.
type codec struct {
	encoding.CodecV2
	door *Door
}

// exported is what pdata's own codec looks for in a message.
type exported interface {
	SizeProto() int
	MarshalProto([]byte) int
	UnmarshalProto([]byte) error
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	if _, ours := message.(exported); ours {
		c.door.kept.keep(message, data)
		return nil
	}
	if packed, ok := isPacked(data); ok {
		unpacked, err := unpackAll(packed, c.door.MaxMessage)
		if err != nil {
			return err
		}
		data = mem.BufferSlice{mem.SliceBuffer(unpacked)}
	}
	return c.CodecV2.Unmarshal(data, message)
}

// kept are the bytes of messages between the codec, which knows no call, and the call that they belong to. It
// is safe for concurrent use.
type kept struct {
	mu       sync.Mutex
	messages map[any]mem.BufferSlice // without bytes once a call has claimed them
}

// keep holds on to the bytes of a message. Those of a second message for the same request, which no client of
// a unary method may send, are dropped: grpc refuses such a call as soon as it has read them.
func (k *kept) keep(message any, data mem.BufferSlice) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, second := k.messages[message]; second {
		return
	}
	if k.messages == nil {
		k.messages = map[any]mem.BufferSlice{}
	}
	data.Ref()
	k.messages[message] = data
}

// claim returns the bytes of a message, for the caller to free; ok if it is one that was kept. The message is
// remembered until it is dropped.
func (k *kept) claim(message any) (data mem.BufferSlice, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if data, ok = k.messages[message]; ok {
		k.messages[message] = nil
	}
	return data, ok
}

// drop forgets a message that was claimed.
func (k *kept) drop(message any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.messages, message)
}
