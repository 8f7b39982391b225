# A bridge and the studio that looks at it: docker build -t seustream . && docker run \
#     -p 127.0.0.1:8815:8815 -p 127.0.0.1:8816:8816 \
#     -e SEUSTREAM_TOKEN=$(openssl rand -hex 16) -v seustream:/var/lib/seustream seustream
# The studio's page is on port 8816. Its link, with a token of its own, is in the log; open it at 127.0.0.1.
FROM python:3.11-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.11-slim-bookworm
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[studio]" && rm -r /wheels \
    && useradd --system --create-home --home-dir /var/lib/seustream seustream
USER seustream
VOLUME /var/lib/seustream
EXPOSE 8815 8816
# Others can reach them, so they have a token; the shell leaves it in a file, where both want it.
CMD ["sh", "-c", "umask 077; printf %s \"${SEUSTREAM_TOKEN:?set SEUSTREAM_TOKEN, 16 characters or more}\" > /tmp/token; seustream studio --no-browser --listen 0.0.0.0:8816 --bridge grpc://127.0.0.1:8815 --token-file /tmp/token & exec seustream serve --listen grpc://0.0.0.0:8815 --token-file /tmp/token --journal /var/lib/seustream/journal"]
