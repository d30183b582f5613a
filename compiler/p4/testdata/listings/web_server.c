// The paper's listings 2 and 1, as they are printed. return_value is listing 1's to choose: here, a global object.
#define MEM_PER_LAMBDA 20
uint8_t memory[MEM_PER_LAMBDA * 3];
int web_server(EXTRACTED_HEADERS_T *headers,
               MATCH_DATA_T *match_data)
{
    serverHdr_T *serverHdr =
        hdr_get_serverHdr(headers);
    memcpy(serverHdr->address, memory,
           MEM_PER_LAMBDA);
    return RETURN_FORWARD;
}

int return_value = RETURN_FORWARD;

int function_name(EXTRACTED_HEADERS_T *headers,
                  MATCH_DATA_T *match_data)
{
    // local/global memory and objects.
    return return_value;
}
