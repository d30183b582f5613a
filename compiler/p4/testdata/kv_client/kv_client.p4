// A key-value client. Job 2 gets a key, job 3 sets it, at the memcached server beside the client: the request is marked by a
// port and cloned at egress; the clone, back at ingress, becomes the query, and the server's answer the client's.
#include "include/headers.p4"
#include "include/parser.p4"

#define MEMCACHED_PORT 11211
#define JOB_BYTES 20
#define MARK_GET 0x3001
#define MARK_SET 0x3002

header_type query_t {
    fields {
        text : 256;
    }
}

header_type origin_t {
    fields {
        job : 32;
        unused : 32;
    }
}

header query_t query;
metadata origin_t origin;

primitive_action write_query();

field_list origin_list {
    origin.job;
}

control ingress {
    if (valid(job)) {
        if (job.number == 2 or job.number == 3) {
            apply(mark);
        } else {
            apply(to_host);
        }
    } else if (valid(udp)) {
        if (udp.dstPort == MARK_GET or udp.dstPort == MARK_SET) {
            apply(make_query);
            apply(return_query);
        } else if (udp.srcPort == MEMCACHED_PORT) {
            apply(take_answer);
            apply(return_answer);
        } else {
            apply(to_host);
        }
    } else {
        apply(to_host);
    }
}

control egress {
    if (valid(udp)) {
        if (udp.dstPort == MARK_GET or udp.dstPort == MARK_SET) {
            apply(clone_marked);
        }
    }
}

action do_mark(port) {
    modify_field(origin.job, job.number);
    modify_field(udp.dstPort, port);
    remove_header(job);
    subtract_from_field(ipv4.totalLen, JOB_BYTES);
    subtract_from_field(udp.length_, JOB_BYTES);
    modify_field(udp.checksum, 0);
    modify_field(standard_metadata.egress_spec, 0x300);
}

action do_make_query() {
    add_header(query);
    write_query();
    modify_field(udp.dstPort, MEMCACHED_PORT);
}

action do_take_answer() {
    modify_field(udp.srcPort, 4369);
}

action send_back() {
    modify_field(eth.dstAddr, eth.srcAddr);
    modify_field(eth.srcAddr, tmp.mac);
    modify_field(ipv4.dstAddr, ipv4.srcAddr);
    modify_field(ipv4.srcAddr, tmp.ip);
    modify_field(udp.checksum, 0);
    modify_field(standard_metadata.egress_spec, standard_metadata.ingress_port);
}

action do_clone() { clone_egress_pkt_to_ingress(1, origin_list); }
action forward(port) { modify_field(standard_metadata.egress_spec, port); }

table mark {
    reads { job.number : exact; }
    actions { do_mark; }
}
table make_query { actions { do_make_query; } }
table take_answer { actions { do_take_answer; } }
table return_query { actions { send_back; } }
table return_answer { actions { send_back; } }
table clone_marked { actions { do_clone; } }
table to_host {
    reads { standard_metadata.ingress_port : exact; }
    actions { forward; }
}
