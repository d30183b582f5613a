#ifndef HEADERS
#define HEADERS

/* Ethernet, IPv4 and UDP, and behind them a job: its number and 16 bytes of its own. */

header_type ethernet_t {
    fields {
        dstAddr : 48;
        srcAddr : 48;
        etherType : 16;
    }
}

header_type ipv4_t {
    fields {
        version : 4;
        ihl : 4;
        diffserv : 8;
        totalLen : 16;
        identification : 16;
        flags : 3;
        fragOffset : 13;
        ttl : 8;
        protocol : 8;
        hdrChecksum : 16;
        srcAddr : 32;
        dstAddr : 32;
    }
}

header_type udp_t {
    fields {
        srcPort : 16;
        dstPort : 16;
        length_ : 16;
        checksum : 16;
    }
}

header_type job_t {
    fields {
        number : 32;
        data : 128;
    }
}

header_type tmp_t {
    fields {
        mac : 48;
        ip : 32;
        port : 16;
    }
}

header ethernet_t eth;
header ipv4_t ipv4;
header udp_t udp;
header job_t job;
metadata tmp_t tmp;

field_list ipv4_list {
    ipv4.version;
    ipv4.ihl;
    ipv4.diffserv;
    ipv4.totalLen;
    ipv4.identification;
    ipv4.flags;
    ipv4.fragOffset;
    ipv4.ttl;
    ipv4.protocol;
    16'0;
    ipv4.srcAddr;
    ipv4.dstAddr;
}

field_list_calculation ipv4_sum {
    input { ipv4_list; }
    algorithm : csum16;
    output_width : 16;
}

calculated_field ipv4.hdrChecksum {
    verify ipv4_sum;
    update ipv4_sum;
}

#endif
