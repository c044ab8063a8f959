// Copyright 2015 The etcd Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

// Changed for turnup: the time limits reach the connections.
//
// The original sets Dial of the transport. NewTransport has set DialContext before, and net/http
// ignores Dial where there is a DialContext: --raft-read-timeout and --raft-write-timeout had no
// effect on the streams between members. After a network was lost and came back, a stream stayed
// half open until TCP sent again, which takes as long again as the network was away. A leader that
// was lost in that time had no successor, because the two others did not hear each other.
//
// This file can go when the original sets DialContext.

package transport

import (
	"context"
	"net"
	"net/http"
	"time"
)

// NewTimeoutTransport returns a transport created using the given TLS info.
// If read/write on the created connection blocks longer than its time limit,
// it will return timeout error.
// If read/write timeout is set, transport will not be able to reuse connection.
func NewTimeoutTransport(info TLSInfo, dialtimeoutd, rdtimeoutd, wtimeoutd time.Duration) (*http.Transport, error) {
	tr, err := NewTransport(info, dialtimeoutd)
	if err != nil {
		return nil, err
	}

	if rdtimeoutd == 0 && wtimeoutd == 0 {
		// allow more idle connections between peers to avoid unnecessary port allocation.
		tr.MaxIdleConnsPerHost = 1024
		return tr, nil
	}

	// the timed out connection will timeout soon after it is idle.
	// it should not be put back to http transport as an idle connection for future usage.
	tr.MaxIdleConnsPerHost = -1

	// the dialer of NewTransport sets the local address of the connection.
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return timeoutConn{Conn: conn, readTimeout: rdtimeoutd, writeTimeout: wtimeoutd}, nil
	}
	return tr, nil
}
