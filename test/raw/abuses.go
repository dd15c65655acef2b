// SPDX-License-Identifier: Apache-2.0

package raw

import "testing"

// Abuse is a call that is made as nobody should, with a body that would be good.
type Abuse func(t *testing.T, c *Client, body []byte)

// Abuses are what clients do that are not well, each on a connection that others use as well.
var Abuses = map[string]Abuse{
	"a deadline that has passed": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod, "grpc-timeout", "1n"), Message(false, body), 16384, true)
	},
	"an unknown method": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, "/no.such.Service/Export"), Message(false, body), 16384, true)
	},
	"a client that vanishes amid its message": func(t *testing.T, c *Client, body []byte) {
		id := c.Open(t, TracesMethod)
		c.Send(t, id, Message(false, body)[:len(body)/2], 3000, false)
		c.Reset(t, id)
	},
	"a client that vanishes after its message": func(t *testing.T, c *Client, body []byte) {
		id := c.Open(t, TracesMethod)
		c.Send(t, id, Message(false, body), 3000, true)
		c.Reset(t, id)
	},
	"a message over the receiver's limit": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod), append(Announced(64<<20+1), body...), 16384, false)
	},
	"a message that is no protobuf": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod), Message(false, append([]byte{0xff, 0xff}, body...)), 16384, true)
	},
	"a message in tiny frames": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod), Message(false, body), 50, true)
	},
	"no message": func(t *testing.T, c *Client, _ []byte) {
		c.Send(t, c.Open(t, TracesMethod), nil, 1, true)
	},
	"an empty message": func(t *testing.T, c *Client, _ []byte) {
		c.Send(t, c.Open(t, TracesMethod), Message(false, nil), 5, true)
	},
	"two messages": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod), append(Message(false, body), Message(false, body)...), 16384, true)
	},
	"what says that it is gzip": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod, "grpc-encoding", "gzip"), Message(true, body), 16384, true)
	},
	"a compression that nobody knows": func(t *testing.T, c *Client, body []byte) {
		c.Send(t, c.Open(t, TracesMethod, "grpc-encoding", "zip"), Message(true, body), 16384, true)
	},
	"a message that is announced and does not come": func(t *testing.T, c *Client, _ []byte) {
		id := c.Open(t, TracesMethod)
		c.Send(t, id, Announced(16<<20), 5, false)
		c.Reset(t, id)
	},
}
